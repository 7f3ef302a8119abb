"""The heads of conversations as rows of the store. Knows no rubric and opens no store."""

from __future__ import annotations

from collections.abc import Iterable
from sys import intern

from vera_local.conversation import Ending, Head

HEADS = (
    "select c.id, c.persona, c.repeat, c.ending, count(m.turn), coalesce(sum(m.speaker = 'chatbot'), 0),"
    " coalesce(sum(length(m.text)), 0)"
    " from conversations c left join messages m on m.conversation = c.id group by c.id order by c.place"
)
"""The columns of every head, in the run's order."""


def head_of(row: tuple[str, str, int, str | None, int, int, int]) -> Head:
    """The head whose columns HEADS are in `row`."""
    id, persona, repeat, ending, *counts = row
    # Many conversations share a persona: its name is kept once.
    return Head(id, intern(persona), repeat, None if ending is None else Ending(ending), *counts)


def longest_first(heads: Iterable[Head]) -> tuple[Head, ...]:
    """By their characters; those of equal length stay in the order given."""
    return tuple(sorted(heads, key=lambda head: -head.characters))
