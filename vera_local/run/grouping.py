"""Persona columns to score by. Knows no rating."""

from __future__ import annotations

from collections.abc import Iterable

from vera_local.bundle import Bundle
from vera_local.errors import UserError
from vera_local.score import Grouping


def groupings(bundle: Bundle, columns: Iterable[str]) -> dict[str, Grouping]:
    """Column -> which persona has which value, values in the order in which the persona file has them.

    UserError, naming the columns, for one that the persona file does not have.
    """
    return {column: _grouping(bundle, column) for column in columns}


def _grouping(bundle: Bundle, column: str) -> Grouping:
    known = bundle.personas[0].fields
    if column not in known:
        raise UserError(f"--by {column}: there is no such persona column; name one of: {', '.join(known)}")
    values = {p.name: p.fields[column] for p in bundle.personas}
    order = bundle.groups if column == bundle.group_column else tuple(dict.fromkeys(values.values()))
    return Grouping(values, order)
