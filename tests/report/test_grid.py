"""Tables that do not fit are broken into several; no number is lost."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from vera_local.report.grid import Grid, Row


def shown(grid: Grid, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(grid)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


GRID = Grid("Rater", ["n", *(f"column {i}" for i in range(9))], [Row("ann", [str(100 + i) for i in range(10)])], 1)


def test_what_fits_is_one_table() -> None:
    (row,) = [line for line in shown(GRID, 200) if line.startswith("ann")]
    assert row.split() == ["ann", *(str(100 + i) for i in range(10))]


def test_what_does_not_fit_is_several_with_name_and_first_column_in_each() -> None:
    rows = [line.split() for line in shown(GRID, 40) if line.startswith("ann")]
    assert len(rows) > 2
    assert {tuple(row[:2]) for row in rows} == {("ann", "100")}
    assert [cell for row in rows for cell in row[2:]] == [str(101 + i) for i in range(9)]


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 12), st.text("ab ", min_size=1, max_size=60), st.integers(40, 120))
def test_nothing_is_cut_off(columns: int, name: str, width: int) -> None:
    cells = [f"{i}.000\n0.10..0.9{i}" for i in range(columns)]
    lines = shown(Grid("", [f"dimension_{i}" for i in range(columns)], [Row(name, cells)]), width)
    words = " ".join(lines).split()
    assert max(map(len, lines)) <= width
    for i in range(columns):
        assert f"{i}.000" in words and f"0.10..0.9{i}" in words


@pytest.mark.parametrize("width", [40, 80])
def test_a_long_name_is_wrapped(width: int) -> None:
    words = " ".join(
        shown(Grid("", ["n"], [Row("baseline: mode per dimension and chatbot " * 3, ["5"])]), width)
    ).split()
    assert words.count("chatbot") == 3 and "5" in words
