"""A table of people's ratings, one row per rating or more. Knows no statistic, no scale and no run.

Blanks around a text do not count, nor does the apostrophe that our own tables have before what looks like a formula.
"""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from vera_local.bundle.source import LARGEST, Source
from vera_local.errors import UserError
from vera_local.report.cells import unmarked
from vera_local.score.labels import Rated

SEPARATOR = " / "
DIMENSION = "rating"
"""The one dimension of a table whose columns are raters."""


@dataclass(frozen=True)
class Layout:
    """Which columns hold what.

    `rater` and `dimension` given: one rating per row. `rater` alone: a column of `ratings` per dimension. No `rater`:
    a column of `ratings` per rater. An item that takes several columns is named by all of them.
    """

    item: tuple[str, ...]
    ratings: tuple[str, ...]
    rater: str | None = None
    dimension: str | None = None
    chatbot: str | None = None
    cluster: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """Every column that is named, in order."""
        single = [column for column in (self.rater, self.dimension, self.chatbot) if column is not None]
        return (*self.item, *single, *self.ratings, *self.cluster)


@dataclass(frozen=True)
class Cleaning:
    """What to make of the cells. An empty cell is a missing rating, as is each word of `missing`.

    `dimensions` and `words` rename. `without`: ratings for which every column of one of these has the value given
    are left out; `dimension` stands for the dimension, before it is renamed.
    """

    missing: frozenset[str] = frozenset()
    dimensions: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    without: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class Table:
    """The ratings; their dimensions in order; for each item what it is drawn with and, if said, the chatbot; notes."""

    rows: tuple[Rated, ...]
    dimensions: tuple[str, ...]
    clusters: dict[str, str]
    chatbots: dict[str, str] | None
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Row:
    """`marked`: whether a leading # was taken off the item's name: some rows of one item have it and some have not."""

    place: str
    cells: Mapping[str, str]
    marked: bool


class _Cell(NamedTuple):
    row: _Row
    rater: str
    dimension: str
    rating: str


def read_labels(path: Path, layout: Layout, cleaning: Cleaning) -> Table:
    """Read a CSV file (UTF-8, with a header); raises UserError, naming file and line, for what is not understood."""
    if not layout.item or not layout.ratings:
        raise UserError(f"{path}: say which columns hold the item and the ratings, with --item and --ratings")
    if layout.dimension is not None and (layout.rater is None or len(layout.ratings) > 1):
        raise UserError(f"{path}: --dimension is for one rating per row: name one column with --rater and --ratings")
    _must_be_single(layout.ratings, layout.ratings, f"{path}: --ratings")
    rows = list(_rows(Source.read(path, LARGEST), layout))
    items = {row: _item(row, layout.item) for row in rows}
    hashes = {item for row, item in items.items() if row.marked}
    written = list(_cells(rows, layout))
    cells = [cell for cell in written if not _left_out(cell, cleaning)]
    must_be_known(cleaning.dimensions, (cell.dimension for cell in cells), f"{path}: --map", "dimension")
    must_be_known(cleaning.words, (cell.rating for cell in cells), f"{path}: --map-rating", "rating")
    given = [cell for cell in cells if cell.rating and cell.rating not in cleaning.missing]
    return Table(
        rows=tuple(_rated(cell, items[cell.row], cleaning) for cell in given),
        dimensions=tuple(dict.fromkeys(cleaning.dimensions.get(c.dimension, c.dimension) for c in written)),
        clusters=_by_item(items, layout.cluster) if layout.cluster else {item: item for item in items.values()},
        chatbots=None if layout.chatbot is None else _by_item(items, (layout.chatbot,)),
        notes=(
            *([f"{path}: a leading # was taken off the names of {len(hashes)} items."] if hashes else []),
            *([f"{path}: {len(cells) - len(given)} of {len(cells)} ratings are missing."] if given != cells else []),
        ),
    )


def must_be_known(names: Iterable[str], known: Iterable[str], place: str, kind: str) -> None:
    """UserError, with the nearest known name and all of them, for the first of `names` that is not known."""
    known = list(dict.fromkeys(known))
    for name in names:
        if name not in known:
            raise UserError(f"{place}: unknown {kind} '{name}'{_nearest(name, known)}; known: {_listed(known)}")


def _nearest(name: str, known: Sequence[str]) -> str:
    folded = {other.casefold(): other for other in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.3)
    return f" (did you mean '{folded[near[0]]}'?)" if near else ""


def _listed(names: Sequence[str], most: int = 30) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"'{name}'" for name in names[:most]) + more if names else "none"


def _rows(source: Source, layout: Layout) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(source.text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _must_have_columns(header, layout.named, f"{source.path}, line 1")
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield _row(header, cells, f"{source.path}, line {reader.line_num}", layout.item)
    except csv.Error as error:
        raise UserError(f"{source.path}, line {reader.line_num}: this is no CSV ({error}); correct the row.") from None


def _must_have_columns(header: Sequence[str], named: Sequence[str], place: str) -> None:
    parted = next((mark for mark in (";", "\t") if len(header) == 1 and mark in header[0]), None)
    if parted is not None and header[0] not in named:
        mark = "tabs" if parted == "\t" else f"'{parted}'"
        raise UserError(f"{place}: the columns are parted by {mark}; save the table with commas between them.")
    must_be_known(named, header, place, "column")
    _must_be_single(named, header, place)


def _must_be_single(names: Iterable[str], among: Sequence[str], place: str) -> None:
    for name in names:
        if among.count(name) > 1:
            raise UserError(f"{place}: there are {among.count(name)} columns '{name}'; keep or name one of them.")


def _row(header: list[str], cells: list[str], place: str, item: Sequence[str]) -> _Row:
    if len(cells) != len(header):
        raise UserError(f"{place}: {len(cells)} cells where the header has {len(header)}; correct the row.")
    found = dict(zip(header, (unmarked(cell.strip()).strip() for cell in cells), strict=True))
    names = {column: found[column].lstrip("#").strip() for column in item}
    return _Row(place, found | names, marked=any(names[column] != found[column] for column in item))


def _joined(row: _Row, columns: Sequence[str]) -> str:
    return SEPARATOR.join(row.cells[column] for column in columns)


def _item(row: _Row, columns: Sequence[str]) -> str:
    if not all(row.cells[column] for column in columns):
        raise UserError(f"{row.place}: the item has no name in {_listed(columns)}; give it one or take the row out.")
    return _joined(row, columns)


def _cells(rows: Iterable[_Row], layout: Layout) -> Iterator[_Cell]:
    for row in rows:
        for column in layout.ratings:
            rating = row.cells[column]
            if layout.rater is None:
                yield _Cell(row, column, DIMENSION, rating)
            else:
                dimension = column if layout.dimension is None else row.cells[layout.dimension]
                yield _Cell(row, _rater(row, layout.rater), dimension, rating)


def _rater(row: _Row, column: str) -> str:
    if not row.cells[column]:
        raise UserError(f"{row.place}: column '{column}' names no rater; give one or take the row out.")
    return row.cells[column]


def _left_out(cell: _Cell, cleaning: Cleaning) -> bool:
    return any(_is(cell, conditions) for conditions in cleaning.without)


def _is(cell: _Cell, conditions: Mapping[str, str]) -> bool:
    facts = {**cell.row.cells, "dimension": cell.dimension}
    must_be_known(conditions, facts, "--without", "column")
    return all(facts[column] == value for column, value in conditions.items())


def _rated(cell: _Cell, item: str, cleaning: Cleaning) -> Rated:
    dimension = cleaning.dimensions.get(cell.dimension, cell.dimension)
    return Rated(item, dimension, cell.rater, cleaning.words.get(cell.rating, cell.rating), cell.row.place)


def _by_item(items: Mapping[_Row, str], columns: Sequence[str]) -> dict[str, str]:
    """What the columns say of each item; UserError where two of its rows differ."""
    found: dict[str, tuple[str, str]] = {}
    for row, item in items.items():
        value = _joined(row, columns)
        first, place = found.setdefault(item, (value, row.place))
        if value != first:
            raise UserError(f"{row.place}: '{item}' has '{value}' here and '{first}' in {place}; correct one of them.")
    return {item: value for item, (value, _) in found.items()}
