"""Which conversations a reader asked for, in which order. Knows no text and no page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from vera_local.errors import UserError
from vera_local.report.reading import UNRATED
from vera_local.report.terminal import ENDINGS
from vera_local.run.glances import Doubts
from vera_local.run.viewed import Row
from vera_local.score import Scale
from vera_local.view.asked import Asked

DoubtsOf = Callable[[Sequence[str]], Mapping[str, Doubts]]
"""Counts the doubtful answers of conversations by their ids: the one part that has to be read for it."""

PLAIN = ("place", "persona", "group", "ending", "turns", "uncertain", "missing")
"""What one can sort by, beside the dimensions, which are `d0`, `d1` and so on."""


def choose(
    rows: Sequence[Row], asked: Asked, scale: Scale, holding: Collection[str] | None, doubts: DoubtsOf
) -> list[Row]:
    """Those of the rows that were asked for, sorted; `holding`: the conversations that hold the words, if any were.

    UserError for a column that there is not.
    """
    keep = [row for row in rows if _kept(row, asked, scale) and (holding is None or row.sight.id in holding)]
    counted: Mapping[str, Doubts] = {}
    if asked.uncertain or asked.sort in ("uncertain", "missing"):
        counted = doubts([row.sight.id for row in keep])
    if asked.uncertain:
        keep = [row for row in keep if any(counted.get(row.sight.id, Doubts()))]
    return sorted(keep, key=_key(asked.sort, scale, counted), reverse=bool(asked.down))


def _kept(row: Row, asked: Asked, scale: Scale) -> bool:
    sight, part = row.sight, asked.persona.casefold()
    return (
        (not part or part in sight.persona.casefold() or part in sight.id.casefold())
        and (not asked.group or row.group == asked.group)
        and (not asked.ending or ENDINGS[sight.ending] == asked.ending)
        and (not asked.shortest or sight.turns >= int(asked.shortest))
        and (not asked.longest or sight.turns <= int(asked.longest))
        and (not asked.rating or _rated(row, asked, scale))
    )


def _rated(row: Row, asked: Asked, scale: Scale) -> bool:
    dimensions = [asked.dimension] if asked.dimension else scale.dimensions
    return any((row.ratings[d] or UNRATED) == asked.rating for d in dimensions if d in row.ratings)


def _key(sort: str, scale: Scale, doubts: Mapping[str, Doubts]) -> Callable[[Row], Any]:
    """What rows are compared by; equal ones stay in the run's order."""
    keys: dict[str, Callable[[Row], Any]] = {
        "place": lambda row: row.sight.place,
        "persona": lambda row: row.sight.persona.casefold(),
        "group": lambda row: scale.groups.index(row.group),
        "ending": lambda row: ENDINGS[row.sight.ending],
        "turns": lambda row: row.sight.turns,
        "uncertain": lambda row: doubts.get(row.sight.id, Doubts()).uncertain,
        "missing": lambda row: doubts.get(row.sight.id, Doubts()).missing,
    }
    for place, dimension in enumerate(scale.dimensions):
        keys[f"d{place}"] = partial(_worse, scale, dimension)
    if sort not in keys:
        raise UserError(f"There is no column {sort[:20]!r} to sort by: choose one of {', '.join(keys)}")
    return keys[sort]


def _worse(scale: Scale, dimension: str, row: Row) -> int:
    """The place of the rating, the best one 0; below it what is no rating."""
    rating = row.ratings.get(dimension)
    return scale.ratings.index(rating) if rating in scale.ratings else -1
