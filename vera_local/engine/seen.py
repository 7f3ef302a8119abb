"""How much of a prompt was there before, without counting its tokens. Knows no engine and no conversation."""

from __future__ import annotations

ROOM = 8_000_000
"""Bytes kept in each of two generations: the prompts of some hundred long transcripts with all their questions."""

NODE = 250
"""What a beginning takes in memory beside its bytes, so that many short ones count, too."""


class _Node:
    """Bytes that follow those of the node above, and what follows them, by first byte."""

    __slots__ = ("children", "text")

    def __init__(self, text: bytes, children: dict[int, _Node] | None = None) -> None:
        self.text = text
        self.children = {} if children is None else children

    def extend(self, text: bytes) -> None:
        """Let `text` follow: a history that only grows stays one node."""
        if self.children or not self.text:
            self.children[text[0]] = _Node(text)
        else:
            self.text += text

    def split(self, at: int) -> None:
        """Let the bytes from `at` on be a node below."""
        self.children = {self.text[at]: _Node(self.text[at:], self.children)}
        self.text = self.text[:at]


class Seen:
    """Texts as a prefix cache without end would keep them: each beginning once, whatever follows it.

    When `room` bytes came together they become the old generation, and the old one before is forgotten; what is asked
    for again moves on to the new one. So memory is bounded, and a text is known for as long as it goes on being used.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._kept = 0
        self._new, self._old = _Node(b""), _Node(b"")

    def add(self, text: bytes) -> int:
        """How many of the first bytes of `text` some text before began with; it is kept, too."""
        shared, added = _put(self._new, text)
        if added:
            shared = max(shared, _alike(self._old, text))
            self._kept += added + NODE
        if self._kept > self._room:
            self._new, self._old, self._kept = _Node(b""), self._new, 0
        return shared

    def forget(self) -> None:
        """Give back all memory."""
        self._new, self._old, self._kept = _Node(b""), _Node(b""), 0


def _put(root: _Node, text: bytes) -> tuple[int, int]:
    """How many first bytes were there, and how many came to them."""
    node, at, end = root, 0, len(text)
    while at < end:
        child = node.children.get(text[at])
        if child is None:
            node.extend(text[at:])
            break
        if not text.startswith(child.text, at):
            same = _common(child.text, text, at)
            child.split(same)
            at += same
        else:
            at += len(child.text)
        node = child
    return at, end - at


def _alike(root: _Node, text: bytes) -> int:
    """How many first bytes are there."""
    node, at, end = root, 0, len(text)
    while at < end and (child := node.children.get(text[at])) is not None:
        if not text.startswith(child.text, at):
            return at + _common(child.text, text, at)
        at += len(child.text)
        node = child
    return at


def _common(one: bytes, text: bytes, at: int) -> int:
    """How many first bytes of `one`, which differs, stand in `text` from `at` on; halves what is compared."""
    low, high = 0, min(len(one), len(text) - at)
    while low < high:
        middle = (low + high + 1) // 2
        if text.startswith(one[low:middle], at + low):
            low = middle
        else:
            high = middle - 1
    return low
