"""Ratings as a table, one row per conversation, judge and dimension. Knows no scale and no formula."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import polars as pl

from vera_local.score.framing import framed

UNKNOWN: Final = "Unknown"
"""The group of personas that the bundle does not know."""

SCHEMA: Final = pl.Schema(
    {
        "conversation": pl.String(),
        "persona": pl.String(),
        "group": pl.String(),
        "repeat": pl.Int64(),
        "judge": pl.String(),
        "dimension": pl.String(),
        "rating": pl.String(),
    }
)
"""Columns of a frame of ratings, in order."""


class Rating(NamedTuple):
    """One row. `group` is the persona's group (its risk level); `rating` None means Unrated."""

    conversation: str
    persona: str
    group: str
    repeat: int
    judge: str
    dimension: str
    rating: str | None


def ratings_frame(rows: Iterable[Rating]) -> pl.DataFrame:
    """A frame of SCHEMA with one row per rating, in the order given; no rows give an empty frame of SCHEMA."""
    return framed(rows, SCHEMA)
