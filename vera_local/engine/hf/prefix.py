"""Prompts whose keys and values are kept: what the next prompt shares with one need not be computed. Knows no model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

KeyValues = list[tuple["Tensor", "Tensor"]]
"""Per layer, keys and values of shape (rows, heads, tokens, head size)."""


class Kept(NamedTuple):
    """One prompt and what was computed for it. The tensors are never written to."""

    ids: tuple[int, ...]
    values: KeyValues


class Prefixes:
    """The last prompts, `slots` at most."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._kept: list[Kept] = []

    def longest(self, ids: Sequence[int]) -> Kept:
        """The longest beginning of `ids` that is known, without ids where none is."""
        found = max(self._kept, key=lambda kept: _common(kept.ids, ids), default=None)
        length = 0 if found is None else _common(found.ids, ids)
        if found is None or length == 0:
            return Kept((), [])
        return Kept(found.ids[:length], [(k[..., :length, :], v[..., :length, :]) for k, v in found.values])

    def keep(self, ids: tuple[int, ...], values: KeyValues) -> None:
        """Keep a prompt, in place of one that shares most of itself with it, or else of the oldest."""
        self._kept = [kept for kept in self._kept if 2 * _common(kept.ids, ids) <= len(kept.ids)]
        self._kept = [*self._kept, Kept(ids, values)][-self._slots :] if self._slots else []

    def clear(self) -> None:
        """Forget all, to give memory back."""
        self._kept = []


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
