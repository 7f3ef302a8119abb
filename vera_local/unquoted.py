"""Takes what somebody was told out of the words that come back from there. Knows neither of the two sides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import unescape
from itertools import groupby
from typing import NamedTuple
from urllib.parse import unquote

PIECE = 12
"""Bytes of letters and digits in a row from which a piece counts as quoted."""

WHOLE = 4
"""The same where the piece is a whole text."""

READ = 4000
"""Characters that are looked through; what is longer is cut."""

GONE = "[...]"
"""Stands for what is taken out."""

_ESCAPED = r"\\+(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[abfnrtv])?|(?:%[0-9a-fA-F]{2})+|&#?\w{1,8};"
"""What JSON, Python, URLs and HTML write for a character, or for the beginning of one."""

_ESCAPE = re.compile(_ESCAPED)
_WRITTEN = re.compile(f"{_ESCAPED}|.", re.DOTALL)


def unquoted(words: str, told: Iterable[str]) -> str:
    """`words` without what also stands in a text of `told`, however it is escaped, spaced or punctuated.

    What is left can still be told: a reason, names of fields, places.
    """
    words = words[:READ]
    letters = [*_letters(words)]
    line = bytes(letter.byte for letter in letters)
    hidden = bytearray(len(words))
    for begin, end in _quoted(line, letters, [_plain(text) for text in told]):
        first, last = letters[begin].begin, letters[end - 1].end
        hidden[first:last] = b"\1" * (last - first)
    runs = groupby(zip(hidden, words, strict=True), key=lambda character: character[0])
    return "".join(GONE if quoted else "".join(c for _, c in run) for quoted, run in runs)


class _Letter(NamedTuple):
    """A byte of a letter or digit, and where what stands for it begins and ends."""

    byte: int
    begin: int
    end: int


def _quoted(line: bytes, letters: list[_Letter], told: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    """Beginnings and ends of what is quoted in `line`, the bytes of `letters`."""
    places: dict[bytes, list[int]] = {}
    for place in range(len(line) - PIECE + 1):
        places.setdefault(line[place : place + PIECE], []).append(place)
    for text in told:
        for begin in range(len(text) - PIECE + 1):
            for place in places.get(text[begin : begin + PIECE], ()):
                yield place, place + PIECE
        if WHOLE <= len(text) < PIECE:
            yield from _alone(text, line, letters)


def _alone(text: bytes, line: bytes, letters: list[_Letter]) -> Iterator[tuple[int, int]]:
    """Where a short text stands, and not within a longer word."""
    for found in re.finditer(re.escape(text), line):
        begin, end = found.span()
        before = begin == 0 or letters[begin - 1].end < letters[begin].begin
        if before and (end == len(line) or letters[end - 1].end < letters[end].begin):
            yield begin, end


def _letters(words: str) -> Iterator[_Letter]:
    for found in _WRITTEN.finditer(words):
        for byte in _kept(_meant(found[0])):
            yield _Letter(byte, *found.span())


def _plain(text: str) -> bytes:
    return _kept(_ESCAPE.sub(lambda found: _meant(found[0]), text))


def _kept(text: str) -> bytes:
    return "".join(filter(str.isalnum, text.casefold())).encode()


def _meant(written: str) -> str:
    """What an escape stands for; a blank where that is no letter anyway."""
    if written[0] == "\\":
        code = written.lstrip("\\")[1:]
        return chr(int(code, 16)) if code else " "
    return unescape(unquote(written)) if len(written) > 1 else written
