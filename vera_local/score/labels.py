"""Ratings of any raters as one array of codes. Knows no file, no run and no coefficient."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from vera_local.errors import UserError
from vera_local.score.agreement import MISSING, Codes


class Rated(NamedTuple):
    """One rating as it was found; `place` names it in errors."""

    item: str
    dimension: str
    rater: str
    rating: str
    place: str


@dataclass(frozen=True)
class Words:
    """The ratings there are: `ordered` from one end of the scale to the other, then `apart`, which has no place on it.

    Without an order all words are in `apart`.
    """

    ordered: tuple[str, ...]
    apart: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """Every word, in the order of the codes."""
        return (*self.ordered, *self.apart)


@dataclass(frozen=True, eq=False)
class Labels:
    """`codes` (items, dimensions, raters): places in `words.all`, MISSING where a rater gave none.

    `clusters`: for each item what it is drawn with, itself as a rule. `chatbots`: whose conversation an item is, if
    known.
    """

    items: tuple[str, ...]
    dimensions: tuple[str, ...]
    raters: tuple[str, ...]
    words: Words
    codes: Codes
    clusters: tuple[str, ...]
    chatbots: tuple[str, ...] | None = None

    def of(self, raters: Sequence[str]) -> Labels:
        """The same items with these raters, in this order."""
        places = [self.raters.index(rater) for rater in raters]
        return replace(self, raters=tuple(raters), codes=self.codes[:, :, places])


def gather(
    rows: Iterable[Rated],
    words: Words,
    *,
    dimensions: Sequence[str] = (),
    clusters: Mapping[str, str] | None = None,
    chatbots: Mapping[str, str] | None = None,
) -> Labels:
    """The rows as an array; items and raters in the order in which they are first named.

    `dimensions` gives an order to those that occur; others follow. `clusters` and `chatbots` map items. Raises
    UserError, naming both places, where a rater rates an item twice.
    """
    seen: dict[tuple[str, str, str], Rated] = {}
    for row in rows:
        first = seen.setdefault(row[:3], row)
        if first is not row:
            raise UserError(
                f"{row.place}: '{row.rater}' has rated '{row.item}' ({row.dimension}) before, in {first.place}; "
                "keep one of the two ratings."
            )
    items, named, raters = (_places(key[part] for key in seen) for part in range(3))
    ordered = _places([*(name for name in dimensions if name in named), *named])
    code = {word: place for place, word in enumerate(words.all)}
    codes = np.full((len(items), len(ordered), len(raters)), MISSING)
    for (item, dimension, rater), row in seen.items():
        codes[items[item], ordered[dimension], raters[rater]] = code[row.rating]
    drawn = tuple(items) if clusters is None else tuple(clusters[item] for item in items)
    whose = None if chatbots is None else tuple(chatbots[item] for item in items)
    return Labels(tuple(items), tuple(ordered), tuple(raters), words, codes, drawn, whose)


def _places(names: Iterable[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(dict.fromkeys(names))}
