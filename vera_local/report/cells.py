"""Text in the cells of tables that a spreadsheet opens. Knows no table.

A spreadsheet runs a cell that begins like a formula, and such a cell may hold what a chatbot or a judge wrote. One
apostrophe goes in front of it, and in front of what looks like that already: to read such a cell, take one away.
"""

from __future__ import annotations

import re

import polars as pl

FORMULA = "'*[=+\\-@\uff1d\uff0b\uff0d\uff20\t\r\n]"
"""How a text begins that is marked, as a regular expression; the wide signs count in Japanese and Chinese programs."""

_FORMULA = re.compile(FORMULA)


def cell(text: str) -> str:
    """The text as no spreadsheet takes it for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unmarked(text: str) -> str:
    """The text that `cell` made this one of."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text, 1) else text


def cells(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame with every text as `cell` has it; numbers stay as they are."""
    return frame.with_columns(pl.col(pl.String).str.replace(f"^({FORMULA})", "'${1}"))
