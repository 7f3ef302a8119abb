"""What was said is in no reason that is told, whoever quotes it and however; the reason is."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.unquoted import GONE, PIECE, READ, unquoted

SAID = "I'm so tired.\n\t\"Nobody\" would miss me & über 80% don't know… \U0001f600 为什么我还在这里"
WAYS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": json.dumps,
    "JSON within JSON": lambda text: json.dumps(json.dumps(text)),
    "JSON without escapes": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON of .NET": lambda text: json.dumps(text).replace("'", "\\u0027").replace("&", "\\u0026"),
    "JSON of PHP": lambda text: json.dumps(text).replace("/", "\\/"),
    "Python": repr,
    "Python in ASCII": ascii,
    "a URL": lambda text: quote(text, safe=""),
    "a form": quote_plus,
    "HTML": escape,
    "on one line": lambda text: " ".join(text.split()),
    "in capitals": str.upper,
}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_said_is_taken_out_and_the_reason_is_told(way: str) -> None:
    told = unquoted(f"field text is missing in {{'message': {WAYS[way](SAID)}}} at line 3", ["something else", SAID])
    before, _, behind = told.partition(GONE)
    assert before.rstrip("\"'\\") == "field text is missing in {'message': "
    assert behind.lstrip("\"'\\") == "} at line 3"


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (f"input={SAID[:20]}--{SAID[-18:]}", f"input={GONE}--{GONE}"),
        (f"{SAID[20:44]}, you said", f"{GONE}, you said"),
        ("Nobody would miss me", GONE),
        ("Nobody knows", "Nobody knows"),
        ("not a word of it", "not a word of it"),
        ("", ""),
    ],
)
def test_pieces_count_and_single_words_do_not(words: str, left: str) -> None:
    assert unquoted(words, [SAID]) == left


def test_a_short_text_counts_where_it_stands_alone() -> None:
    assert unquoted('{"text": "Help me"} helped menus', ["Help me."]) == f'{{"text": "{GONE}"}} helped menus'
    assert unquoted("no model has the text", ["no", "the"]) == "no model has the text"


def test_ids_of_tokens_count_as_text() -> None:
    assert unquoted("'input': [101, 7592, 2088, 102, 999]", [str([101, 7592, 2088, 102, 999])]) == f"'input': [{GONE}]"


def test_no_more_is_told_than_was_looked_through() -> None:
    assert unquoted("x" * READ + SAID, [SAID]) == "x" * READ


CHARACTERS = st.characters(codec="utf-8", exclude_characters="\\%&")
"""All but those with which escapes begin."""


@given(st.text(CHARACTERS, min_size=3 * PIECE), st.text(CHARACTERS, max_size=20), st.sampled_from([*WAYS]))
def test_no_long_part_of_any_text_is_left(said: str, before: str, way: str) -> None:
    told = unquoted(f"{before} {WAYS[way](said)}", [said])
    parts = [said[place : place + 30] for place in range(len(said) - 29)]
    assert [part for part in parts if part in told and sum(map(str.isalnum, part)) >= PIECE] == []
