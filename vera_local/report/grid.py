"""A table of names and cells that is never cut off: too wide, it is broken into several. Knows not what is in it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from vera_local.report.layout import plain_table, stacked

_NAME_WIDTH = 28


@dataclass(frozen=True)
class Row:
    """One line: a name and a cell for each column of the grid."""

    name: str
    cells: Sequence[str]


@dataclass(frozen=True)
class Grid:
    """`first` is above the names, `columns` above the cells; the first `repeated` columns stand in every part."""

    first: str
    columns: Sequence[str]
    rows: Sequence[Row]
    repeated: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        whole = self._table(range(len(self.columns)))
        if _width(whole, console, options) <= options.max_width:
            yield whole
            return
        for number, part in enumerate(self._parts(console, options)):
            yield from ([Text("")] if number else [])
            yield self._table(part, _NAME_WIDTH)

    def _parts(self, console: Console, options: ConsoleOptions) -> Iterator[list[int]]:
        """The columns of each table: as many as fit, one at least."""
        always, left = list(range(self.repeated)), list(range(self.repeated, len(self.columns)))
        while left:
            tables = {n: self._table([*always, *left[:n]], _NAME_WIDTH) for n in range(len(left), 1, -1)}
            fitting = (n for n, table in tables.items() if _width(table, console, options) <= options.max_width)
            n = next(fitting, 1)
            yield [*always, *left[:n]]
            left = left[n:]

    def _table(self, part: Sequence[int], name_width: int = 1000) -> Table:
        table = plain_table(self.first, [stacked(self.columns[place]) for place in part])
        for row in self.rows:
            table.add_row(Text(textwrap.fill(row.name, name_width)), *(Text(row.cells[place]) for place in part))
        return table


def _width(table: Table, console: Console, options: ConsoleOptions) -> int:
    """What the table takes where nothing is folded."""
    return console.measure(table, options=options.update(width=100 * options.max_width)).maximum
