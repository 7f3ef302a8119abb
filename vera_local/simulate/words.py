"""Text as words, in any script. Knows no language and no persona."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher

UNSPACED = 0.5
"""What one character counts for in scripts that set no blanks between words: words there have about two."""

# Kana and Han with its extensions, Thai and Lao, Burmese, Khmer.
_UNSPACED_RANGES = ((0x3040, 0x30FF), (0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x0E00, 0x0EFF), (0x1000, 0x109F),
                    (0x1780, 0x17FF), (0x20000, 0x323AF))  # fmt: skip

_APOSTROPHES = frozenset("'`\u2019\u02bc")


def words(text: str) -> tuple[str, ...]:
    """The words of a text, without case, punctuation and apostrophes; of a script without blanks its characters."""
    found: list[str] = []
    inside = False
    for char in unicodedata.normalize("NFC", text).casefold():
        kind = unicodedata.category(char)[0]
        if kind == "M" and found:
            found[-1] += char
        elif kind not in "LN":
            inside = inside and char in _APOSTROPHES
        elif _unspaced(char):
            found.append(char)
            inside = False
        elif inside:
            found[-1] += char
        else:
            found.append(char)
            inside = True
    return tuple(found)


def size(units: Sequence[str]) -> float:
    """How many words these are; characters of scripts without blanks count for `UNSPACED` each."""
    return sum(UNSPACED if _unspaced(unit[0]) else 1.0 for unit in units)


def alike(one: Sequence[str], other: Sequence[str], share: float) -> bool:
    """Whether at least `share` of two texts is the same in the same order: 0 nothing, 1 all."""
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    # The first two are cheap upper bounds.
    return matcher.real_quick_ratio() >= share and matcher.quick_ratio() >= share and matcher.ratio() >= share


def shared_run(one: Sequence[str], other: Sequence[str]) -> float:
    """The size of the longest run of words that stands in both."""
    run = SequenceMatcher(None, one, other, autojunk=False).find_longest_match()
    return size(one[run.a : run.a + run.size])


def _unspaced(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in _UNSPACED_RANGES)
