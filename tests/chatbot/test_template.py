from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.chatbot.template import at, filled, must_fit, parsed, places

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
KNOWN = frozenset({"message", "session"})


@given(JSON, JSON)
def test_a_value_takes_its_place_whole_whatever_it_is(value: Any, other: Any) -> None:
    template = {"a": ["{message}", {"b": "{session}"}], "c": 'say "{other}"'}
    put = filled(template, {"message": value, "session": other})
    assert put == {"a": [value, {"b": other}], "c": 'say "{other}"'}
    assert json.loads(json.dumps(put)) == put


def test_places_in_a_value_stay_as_they_are() -> None:
    assert filled(["{message}", "{session}"], {"message": "{session}", "session": "s"}) == ["{session}", "s"]


def test_the_places_of_a_template() -> None:
    assert places({"a": ["{message}", "x {session}"], "{turn}": None}) == {"message"}


def test_a_template_may_be_json_text() -> None:
    assert parsed('{"text": "{message}", "n": null}') == {"text": "{message}", "n": None}


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ('{"text": {message}}', r'this is no JSON .*a place stands in quotes, as in \{"text": "\{message\}"\}'),
        ('{"text": ', "this is no JSON"),
    ],
)
def test_a_template_that_is_no_json_is_told(template: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parsed(template)


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ({"a": "{massage}"}, r"\{massage\} is no place to fill; there are \{message\}, \{session\}"),
        (["User: {message}"], r"\{message\} has to stand alone: 'User: \{message\}' holds more"),
    ],
)
def test_what_would_not_be_filled_is_told(template: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        must_fit(template, KNOWN)


def test_braces_that_are_no_places_are_left_alone() -> None:
    must_fit({"a": "{Message} or {}", "b": "{ message }", "c": "function () {x}"}, KNOWN)


@pytest.mark.parametrize(
    ("path", "found"), [("choices.0.text", "hi"), ("choices.1", None), ("n", 0), ("choices.0", {"text": "hi"})]
)
def test_a_path_leads_to_what_stands_there(path: str, found: Any) -> None:
    assert at({"choices": [{"text": "hi"}, None], "n": 0}, path) == found


@pytest.mark.parametrize("path", ["choices.2.text", "choices.x", "nothing", "n.0", "choices.0.text.0"])
def test_a_path_to_nothing_is_told(path: str) -> None:
    with pytest.raises(LookupError, match=rf"it has no {path}"):
        at({"choices": [{"text": "hi"}, None], "n": 0}, path)
