"""Cells and tables that reports share. Knows nothing of what they show."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from vera_local.score import Bounds

NONE = "-"
"""Stands where an interval is undefined."""

_HEADER_WIDTH = 9  # a count and its percentage side by side need about as much


def plain_table(first: str, columns: Sequence[str]) -> Table:
    """A table whose first column holds names and whose others hold numbers."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False, caption_justify="left")
    table.add_column(Text(first), overflow="fold")
    for name in columns:
        table.add_column(Text(name), justify="right", overflow="fold")
    return table


def stacked(name: str) -> str:
    """The name on several short lines, no word broken."""
    return "\n".join(textwrap.wrap(name, _HEADER_WIDTH, break_long_words=False, break_on_hyphens=False))


def span(bounds: Bounds) -> str:
    """An interval in one cell; 100 without decimals, so that names have room beside six columns of them."""
    if bounds.low is None or bounds.high is None:
        return NONE
    return "-".join("100" if round(bound, 1) == 100 else f"{bound:.1f}" for bound in (bounds.low, bounds.high))


def mark(few: bool) -> str:
    """What stands behind a number that few personas are behind."""
    return "*" if few else ""


def signed_span(bounds: Bounds) -> str:
    """The interval of a difference in one cell."""
    return NONE if bounds.low is None or bounds.high is None else f"{bounds.low:+.1f} to {bounds.high:+.1f}"


def duration(seconds: float) -> str:
    """Seconds in words."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
