"""Text as words, in any script. Knows no language and no persona."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

UNSPACED = 0.5
"""What one character counts for in scripts that set no blanks between words: words there have about two."""

# Kana and Han with its extensions, Thai and Lao, Burmese, Khmer.
_UNSPACED_RANGES = ((0x3040, 0x30FF), (0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x0E00, 0x0EFF), (0x1000, 0x109F),
                    (0x1780, 0x17FF), (0x20000, 0x323AF))  # fmt: skip
_FIRST_UNSPACED = chr(min(first for first, _ in _UNSPACED_RANGES))

_APOSTROPHES = frozenset("'`\u2019\u02bc")


class _Plain(dict[int, str]):
    """Code -> what stands for the character in a text whose words are its parts between blanks; grows as they come."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _plain(chr(code))
        return found


_PLAIN = _Plain()
_MARK = "\0"
"""Stands for a sign that is set on the letter before it; a NUL of a text itself becomes a blank."""


def _plain(char: str) -> str:
    match unicodedata.category(char)[0]:
        case "M":
            return _MARK
        case "L" | "N":
            return f" {char} " if _unspaced(char) else char
    return "" if char in _APOSTROPHES else " "


def words(text: str) -> tuple[str, ...]:
    """The words of a text, without case, punctuation and apostrophes; of a script without blanks its characters."""
    folded = unicodedata.normalize("NFC", text).casefold()
    plain = folded.translate(_PLAIN)
    return _with_marks(folded) if _MARK in plain else tuple(plain.split())


def _with_marks(folded: str) -> tuple[str, ...]:
    """`words` character by character: a mark belongs to the letter before it even behind a blank."""
    found: list[str] = []
    inside = False
    for char in folded:
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
    joined = "".join(units)
    if joined.isascii() or max(joined) < _FIRST_UNSPACED:
        return float(len(units))
    return sum(UNSPACED if _unspaced(unit[0]) else 1.0 for unit in units)


def alike(one: Sequence[str], other: Sequence[str], share: float) -> bool:
    """Whether at least `share` of two texts is the same in the same order: 0 nothing, 1 all."""
    units = len(one) + len(other)

    def enough(shared: int) -> bool:
        return units == 0 or 2.0 * shared / units >= share

    # Cheap upper bounds: no more can be shared than the shorter one has, nor than stands anywhere in the other.
    if not (enough(min(len(one), len(other))) and enough(sum(map(set(other).__contains__, one)))):
        return False
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= share


def shared_run(one: Sequence[str], other: Sequence[str]) -> float:
    """The size of the longest run of words that stands in both."""
    run = SequenceMatcher(None, one, other, autojunk=False).find_longest_match()
    return size(one[run.a : run.a + run.size])


def quotes(one: Sequence[str], text: str, run: int) -> bool:
    """Whether a run of words of at least the size `run` stands in both, `text` being one that is asked about often."""
    known = _runs(text, run)
    found = any(hash(tuple(one[i : i + run])) in known for i in range(len(one) - run + 1))
    # Equal numbers are a sign only, and characters of scripts without blanks are less than a word.
    return found and shared_run(one, words(text)) >= run


@lru_cache(maxsize=512)
def _runs(text: str, length: int) -> frozenset[int]:
    """Numbers that stand for each run of so many units of a text."""
    units = words(text)
    return frozenset(hash(units[i : i + length]) for i in range(len(units) - length + 1))


def _unspaced(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in _UNSPACED_RANGES)
