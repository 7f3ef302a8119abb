"""Rows as frames, a part at a time, so that rows of any number never stand in memory together. Knows no column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import polars as pl

PART = 5_000
"""Rows of a part: in a frame they take a small share of what they take as rows."""


class Gathered:
    """Rows of one schema, taken one by one and kept as columns."""

    def __init__(self, schema: pl.Schema) -> None:
        self._schema = schema
        self._rows: list[Sequence[object]] = []
        self._parts: list[pl.DataFrame] = []

    def add(self, row: Sequence[object]) -> None:
        """Put a row below the others."""
        self._rows.append(row)
        if len(self._rows) == PART:
            self._store()

    def frame(self) -> pl.DataFrame:
        """All rows so far, in the order given; raises as polars where a value is not of its column's type."""
        self._store()
        self._parts = [pl.concat(self._parts, rechunk=True)]
        return self._parts[0]

    def _store(self) -> None:
        self._parts.append(_columns(self._rows, self._schema))
        self._rows.clear()


def framed(rows: Iterable[Sequence[object]], schema: pl.Schema) -> pl.DataFrame:
    """The rows as a frame, in the order given; none make an empty one."""
    gathered = Gathered(schema)
    for row in rows:
        gathered.add(row)
    return gathered.frame()


def slices(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """A frame in parts of `PART` rows and, at the end, the rest; an empty one as it is."""
    for start in range(0, len(frame) or 1, PART):
        yield frame.slice(start, PART)


def framed_parts(rows: Iterable[Sequence[object]], schema: pl.Schema) -> Iterator[pl.DataFrame]:
    """The rows as frames of `PART` rows and, at the end, of the rest; none make one empty frame."""
    rest = iter(rows)
    part = list(islice(rest, PART))
    yield _columns(part, schema)
    while part := list(islice(rest, PART)):
        yield _columns(part, schema)


def _columns(rows: Sequence[Sequence[object]], schema: pl.Schema) -> pl.DataFrame:
    return pl.DataFrame([tuple(row) for row in rows], schema=schema, orient="row")
