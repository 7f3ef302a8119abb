"""A conversation's page among those that were asked for: what it shows. Knows no template and no server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vera_local.run.viewed import Viewed
from vera_local.view.asked import Asked
from vera_local.view.choosing import choose
from vera_local.view.conversation import Reading, reading
from vera_local.view.listing import rows_of


@dataclass(frozen=True)
class ReadingPage:
    """A conversation, and the addresses of its neighbours in the list that it was opened from."""

    reading: Reading
    group_column: str
    back: str
    before: str
    after: str
    words: str


def reading_page(run: Viewed, place: int, asked: Asked) -> ReadingPage:
    """The conversation at this place; KeyError where there is none."""
    held = run.conversation(place)
    _, rows, scale = rows_of(run, asked)
    holding = run.holding(asked.words) if asked.words else None
    order = [row.sight.place for row in choose(rows, asked, scale, holding, run.doubts)]
    return ReadingPage(
        reading=reading(held, run.bundle.rubric, scale, asked.words),
        group_column=run.bundle.group_column,
        back=asked.query(),
        before=_neighbour(order, place, -1, asked.query),
        after=_neighbour(order, place, 1, asked.query),
        words=asked.words,
    )


def _neighbour(order: Sequence[int], place: int, by: int, query: Callable[[], str]) -> str:
    """Empty where there is none."""
    at = order.index(place) + by if place in order else -1
    return f"{order[at]}{query()}" if 0 <= at < len(order) else ""
