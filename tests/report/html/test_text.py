"""Text of others in a page: what a reader sees, and what a browser cannot take for anything else."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.report.html.text import all_visible, script_json, shortened, visible

ANY = st.text(alphabet=st.characters())


@given(ANY)
def test_nothing_invisible_is_left_and_all_of_it_can_be_written(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert all(char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs") for char in shown)
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a\u2400b"),
        ("\x1b[31mred", "\u241b[31mred"),
        ("a\r\nb", "a\nb"),
        ("a\rb", "a\u240db"),
        ("\x7f\x85", "\u2421\\u0085"),
        ("\ud83d", "\\ud83d"),
        ("\ufffe\uffff", "\\ufffe\\uffff"),
        (
            "\u05e9\u05dc\u05d5\u05dd \u200f! \U0001f469\u200d\U0001f4bb",
            "\u05e9\u05dc\u05d5\u05dd \u200f! \U0001f469\u200d\U0001f4bb",
        ),
    ],
)
def test_each_kind_of_character(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.recursive(ANY, lambda inner: st.lists(inner) | st.dictionaries(ANY, inner), max_leaves=5))
def test_data_in_a_script_element_is_what_it_was_and_holds_no_markup(content: object) -> None:
    text = script_json(content)
    assert json.loads(text) == all_visible(content)
    text.encode()
    assert not set(text) & set("<>&\u2028\u2029")


def test_all_strings_of_data_are_visible_and_nothing_else_changes() -> None:
    data = {"a\x00": ["\x9b", 1, None, True, 0.5, ("\ud800", {})]}
    assert all_visible(data) == {"a\u2400": ["\\u009b", 1, None, True, 0.5, ["\\ud800", {}]]}


@given(st.text(), st.integers(1, 50))
def test_a_shortened_text_begins_as_the_whole_and_says_that_it_goes_on(text: str, most: int) -> None:
    short = shortened(text, most)
    assert short == text if len(text) <= most else short.endswith(" …") and text.startswith(short[:-2])
    assert len(short) <= most + 2
