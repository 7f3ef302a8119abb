"""The quick ways to words and to what two texts share find what the slow ones do."""

from __future__ import annotations

import unicodedata
from difflib import SequenceMatcher

from hypothesis import given
from hypothesis import strategies as st

from vera_local.simulate.words import _with_marks, alike, quotes, shared_run, size, words

ODD = st.sampled_from(list("ab '\u2019`-é漢字ไに\0. ½Ⅷ_ßİ\n"))
TEXTS = st.one_of(st.text(), st.lists(ODD).map("".join))
FEW = st.lists(st.sampled_from([*"abc", "漢"]), max_size=12).map(" ".join)


@given(TEXTS)
def test_words_are_those_found_character_by_character(text: str) -> None:
    assert words(text) == _with_marks(unicodedata.normalize("NFC", text).casefold())


def test_a_mark_belongs_to_the_letter_before_it() -> None:
    assert words("x\u0331 y") == ("x\u0331", "y")
    assert words("\u0301") == ()


@given(TEXTS)
def test_the_size_of_words_is_the_sum_over_them(text: str) -> None:
    assert size(words(text)) == sum(size((word,)) for word in words(text))


@given(FEW, FEW, st.sampled_from([0, 0.3, 0.5, 0.85, 1]))
def test_bounds_spare_no_pair_that_is_alike(one: str, other: str, share: float) -> None:
    ratio = SequenceMatcher(None, words(one), words(other), autojunk=False).ratio()
    assert alike(words(one), words(other), share) == (ratio >= share)


@given(FEW, FEW, st.integers(1, 5))
def test_a_quote_is_a_shared_run_of_that_size(one: str, other: str, run: int) -> None:
    assert quotes(words(one), other, run) == (shared_run(words(one), words(other)) >= run)
