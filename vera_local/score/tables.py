"""Ratings of one judge as counts by persona, for sums over any draw of personas. Knows no formula."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from vera_local.score.intervals import DRAWS, Floats, resampled_sums
from vera_local.score.scale import Scale

Counts = NDArray[np.int64]
CLUSTER = "cluster"
_ITSELF = "\0"  # before the id of a conversation that stands for itself: no persona is called so
MANY = 2000
"""Of more personas, those with equal counts are drawn together, which takes less time and gives the same intervals."""


@dataclass(frozen=True)
class Table:
    """What each persona adds to the counts.

    `ratings` (personas, dimensions, words): the words are the scale's ratings, then Not Relevant, then Unrated.
    `conversations` (personas, 3): judged, with any relevant rating, with any worst rating.
    """

    personas: tuple[str, ...]
    ratings: Counts
    conversations: Counts


@dataclass(frozen=True)
class Sums:
    """A table added up over each draw of personas.

    `ratings` (..., dimensions + 1, words): the last dimension is all of them together. `conversations` (..., 3).
    """

    ratings: Floats
    conversations: Floats


def count(frame: pl.DataFrame, scale: Scale) -> Table:
    """Count the ratings (SCHEMA, one judge, words of the scale) by persona.

    A conversation whose persona has no name stands for itself: nothing says which ones belong together.
    """
    clusters, personas = codes(with_cluster(frame)[CLUSTER])
    conversations, ids = codes(frame["conversation"])
    dimensions = _places(frame["dimension"], scale.dimensions)
    words = _words(frame, scale)
    ratings = np.zeros((len(personas), len(scale.dimensions), len(scale.ratings) + 2), dtype=np.int64)
    np.add.at(ratings, (clusters, dimensions, words), 1)
    owner = np.zeros(len(ids), dtype=np.int64)
    owner[conversations] = clusters
    kinds = [words >= 0, words < len(scale.ratings), words == len(scale.ratings) - 1]
    found = [owner[_any(conversations, kind, len(ids))] for kind in kinds]
    return Table(personas, ratings, np.stack([np.bincount(f, minlength=len(personas)) for f in found], axis=1))


def with_cluster(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with a column that says whose conversations depend on each other: the persona's name, or itself."""
    itself = pl.concat_str(pl.lit(_ITSELF), pl.col("conversation"))
    return frame.with_columns(pl.when(pl.col("persona") == "").then(itself).otherwise("persona").alias(CLUSTER))


def unnamed(persona: str) -> bool:
    """Whether this is no persona's name, but a conversation that stands for itself."""
    return persona.startswith(_ITSELF)


def together(one: Table, other: Table, shared: AbstractSet[str]) -> tuple[Table, Table]:
    """Both tables with the same rows: a persona that is not `shared` adds nothing to the table that lacks it."""
    own = [[(name, 0 if name in shared else side) for name in t.personas] for side, t in ((1, one), (2, other))]
    places = {key: place for place, key in enumerate(dict.fromkeys(key for keys in own for key in keys))}
    first, second = (
        _spread(table, [places[key] for key in keys], tuple(name for name, _ in places))
        for table, keys in zip((one, other), own, strict=True)
    )
    return first, second


def _spread(table: Table, places: Sequence[int], personas: tuple[str, ...]) -> Table:
    ratings = np.zeros((len(personas), *table.ratings.shape[1:]), dtype=np.int64)
    conversations = np.zeros((len(personas), *table.conversations.shape[1:]), dtype=np.int64)
    ratings[places], conversations[places] = table.ratings, table.conversations
    return Table(personas, ratings, conversations)


def resampled(tables: Sequence[Table], seed: int, draws: int = DRAWS) -> list[Sums]:
    """The sums of each draw of personas, (draws, ...). The tables must have the same personas: each draw takes the
    same ones from all of them."""
    flat = [np.concatenate([t.ratings.reshape(len(t.personas), -1), t.conversations], axis=1) for t in tables]
    drawn = _drawn(np.concatenate(flat, axis=1), seed, draws)
    parts = np.split(drawn, np.cumsum([part.shape[1] for part in flat])[:-1], axis=1)
    return [
        _sums(part[:, :-3].reshape(draws, *table.ratings.shape[1:]), part[:, -3:])
        for part, table in zip(parts, tables, strict=True)
    ]


def _drawn(counts: Counts, seed: int, draws: int) -> Floats:
    """The sums of each draw of the rows of `counts`: (draws, columns)."""
    if len(counts) <= MANY:
        return resampled_sums(counts, draws, seed)
    # How often a draw takes any of several equal rows is all that its sums depend on.
    kinds, sizes = np.unique(counts, axis=0, return_counts=True)
    taken = np.random.default_rng(seed).multinomial(len(counts), sizes / len(counts), size=draws)
    sums: Floats = taken.astype(np.float64) @ kinds.astype(np.float64)
    return sums


def _sums(ratings: Floats, conversations: Floats) -> Sums:
    return Sums(np.concatenate([ratings, ratings.sum(axis=-2, keepdims=True)], axis=-2), conversations)


def codes(column: pl.Series) -> tuple[Counts, tuple[str, ...]]:
    """Of each row the place of its value among the sorted values, and these."""
    values = column.unique().sort()
    return _places(column, tuple(values)), tuple(values)


def _places(column: pl.Series, values: Sequence[str]) -> Counts:
    return column.cast(pl.Enum(values)).to_physical().cast(pl.Int64).to_numpy()


def _words(frame: pl.DataFrame, scale: Scale) -> Counts:
    """Of each row the place of its rating among the words of a Table."""
    # A rating may be called anything, so the place of an absent Not Relevant has no word of its own.
    known = scale.ratings if scale.not_relevant is None else (*scale.ratings, scale.not_relevant)
    places = frame["rating"].cast(pl.Enum(known)).to_physical().cast(pl.Int64)
    return places.fill_null(len(scale.ratings) + 1).to_numpy()


def _any(owners: Counts, flags: NDArray[np.bool_], n: int) -> NDArray[np.bool_]:
    found = np.zeros(n, dtype=bool)
    found[owners[flags]] = True
    return found
