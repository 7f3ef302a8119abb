"""A tab-separated file as rows of named cells. Knows no meaning of a column.

Cells may be quoted as spreadsheets do it; rows may end in CR LF or LF, and be shorter than the header.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vera_local.bundle.checks import repeated
from vera_local.bundle.problem import Findings
from vera_local.bundle.source import Source


@dataclass(frozen=True)
class Row:
    """Column -> cell without blanks at its ends; `line` is the row's first, `width` how many cells it has itself."""

    line: int
    cells: dict[str, str]
    width: int

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")


@dataclass(frozen=True)
class Table:
    """The rows of a file below its header; rows without any text are left out, and so are columns without a name."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def read(source: Source, findings: Findings) -> Table | None:
    """The table in `source`; None, and a problem, where it holds none. UserError where it is not UTF-8."""
    lines = _lines(source, findings)
    if not lines:
        return None
    header = lines[0][1]
    if twice := repeated(column for column in header if column):
        findings.problem(source.path, f"line 1: the column '{twice[0]}' occurs twice; remove or rename one")
    rows = [_row(source.path, header, line, cells, findings) for line, cells in lines[1:] if any(cells)]
    return Table(source.path, tuple(column for column in header if column), tuple(rows))


def _lines(source: Source, findings: Findings) -> list[tuple[int, list[str]]]:
    """Every row with the number of its first line, and its stripped cells; a problem where there is none."""
    found = []
    reader = csv.reader(io.StringIO(source.text, newline=""), delimiter="\t")
    try:
        for line, cells in _counted(reader):
            if any("\t" in cell for cell in cells):
                findings.problem(source.path, f"line {line}: a quoted cell never ends; remove or double the quote")
            found.append((line, [cell.strip() for cell in cells]))
    except csv.Error as error:
        findings.problem(source.path, f"line {reader.line_num}: this is no table row ({error}); correct it")
        return []
    if not found:
        findings.problem(source.path, "the file is empty; put the published file there")
    return found


def _counted(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    line = 1
    for cells in reader:
        yield line, cells
        # csv's readers have it, but no name of their class to annotate with.
        line = reader.line_num + 1  # type: ignore[attr-defined]


def _row(path: Path, header: list[str], line: int, cells: list[str], findings: Findings) -> Row:
    if any(cells[len(header) :]):
        findings.problem(path, f"line {line}: it has more cells than the header has columns; set the tabs right")
    padded = cells + [""] * (len(header) - len(cells))
    return Row(line, {column: cell for column, cell in zip(header, padded, strict=False) if column}, len(cells))
