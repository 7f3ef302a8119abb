"""The log that SQLite keeps beside a store, by its file format. Knows no table, and changes nothing.

SQLite takes a log for ended at the first frame that is not as it was written, and writes over the rest: right where a
commit was under way when its process was killed, but a silent loss where something changed what had been committed.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HEAD, FRAME = 32, 24
"""Bytes before the first frame, and before the page of each frame."""

BYTES = 4096
"""Of a page, where the head is not as it was written and does not tell."""

MOST_BYTES = 1 << 26
"""That are looked at: SQLite begins a log anew after some 4 MB, unless somebody reads all the time."""

ORDER = {0x377F0682: "<u4", 0x377F0683: ">u4"}
"""How a log begins -> the kind of numbers whose sums it holds; SQLite writes those of its machine."""

OURS = "<u4" if sys.byteorder == "little" else ">u4"

Words = NDArray[np.uint32]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Stranded:
    """Behind a place of a log that is not as it was written: how many commits are whole, and the last image there of
    each page, by its number from 1."""

    commits: int
    pages: dict[int, bytes]

    def are_in(self, store: Path) -> bool:
        """Whether all of them were copied into the store already, and the log only was not yet begun anew."""
        content = store.read_bytes()
        return all(content[(n - 1) * len(page) : n * len(page)] == page for n, page in self.pages.items())


NONE = Stranded(0, {})


def stranded(log: Path) -> Stranded:
    """What of a log SQLite would drop although it was committed.

    A log that ends early looks like one that was never longer, and so does one whose last commit is not whole. Nobody
    may write to it meanwhile. OSError where it cannot be read.
    """
    content = np.zeros(0, np.uint8)
    with suppress(FileNotFoundError):
        # A pipe would not end.
        if log.is_file():
            content = np.fromfile(log, np.uint8, MOST_BYTES)
    if content.size <= HEAD:
        return NONE
    head = content[:HEAD].view(">u4").astype(np.uint32)
    order = ORDER.get(int(head[0]), OURS)
    if bool((_head_sums(content, order) == head[6:]).all()) and int(head[0]) in ORDER:
        return _behind(content[HEAD:], int(head[2]), order, head[6:], head[6:], head[4:6])
    return _behind(content[HEAD:], BYTES, OURS, head[6:], _head_sums(content, OURS), None)


def _head_sums(content: Bytes, order: str) -> Words:
    return _sums(np.zeros((1, 2), np.uint32), _words(content[None, : HEAD - 8], order))


def _behind(content: Bytes, size: int, order: str, told: Words, made: Words, mark: Words | None) -> Stranded:
    """The same of the frames, of pages of that size. Each one continues the sums of the one before it, and the first
    one those of the head, as they are `told` there and as `made` of it. `mark`: what all frames have that belong to the
    head; None where that is not as it was written."""
    frames = content[: content.size // (FRAME + size) * (FRAME + size)].reshape(-1, FRAME + size)
    heads = np.ascontiguousarray(frames[:, :FRAME]).view(">u4").astype(np.uint32)
    words = _words(np.delete(frames, slice(8, FRAME), axis=1), order)
    told = np.vstack([told, heads[:, 4:]])
    made = np.vstack([made, _sums(told[:-1], words)])
    follows = (made == told).all(axis=1)[1:]
    # What is changed may be the sums of the frame before.
    whole = follows | (_sums(made[:-1], words) == told[1:]).all(axis=1)
    # An earlier use of the file leaves frames of another mark.
    ours = np.ones(len(frames), bool) if mark is None else (heads[:, 2:4] == mark).all(axis=1)
    end = 0 if mark is None else _first(~(follows & ours)) + 1
    behind = [n for n in np.flatnonzero(whole & ours) if n >= end]
    commits = [n for n in behind if heads[n, 1]]
    pages = {int(heads[n, 0]): frames[n, FRAME:].tobytes() for n in behind if commits and n <= commits[-1]}
    return Stranded(len(commits), pages)


def _first(found: NDArray[np.bool_]) -> int:
    """The place of the first that is true, or behind the last one."""
    return int(found.argmax()) if found.any() else len(found)


def _words(content: Bytes, order: str) -> Words:
    return np.ascontiguousarray(content).view(order).astype(np.uint32)


def _sums(before: Words, words: Words) -> Words:
    """The sums of each row of words, continued from those `before`; both wrap at 32 bits."""
    first, second = before[:, 0].copy(), before[:, 1].copy()
    for even, odd in zip(words.T[::2], words.T[1::2], strict=True):
        first += even + second
        second += odd + first
    return np.stack([first, second], axis=1)
