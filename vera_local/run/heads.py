"""What there is to know of a conversation without a word of it. Knows no store and no rubric."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from vera_local.conversation import JUDGEABLE, RETRIED, Ending

HEADS = (
    "select c.id, c.persona, c.repeat, c.ending, count(m.turn), coalesce(sum(m.speaker = 'chatbot'), 0),"
    " coalesce(sum(length(m.text)), 0)"
    " from conversations c left join messages m on m.conversation = c.id group by c.id order by c.place"
)
"""The columns of every head, in the run's order."""


class Head(NamedTuple):
    """A conversation without its texts: its messages, those of the chatbot, and the characters of all together."""

    id: str
    persona: str
    repeat: int
    ending: Ending | None
    turns: int
    by_chatbot: int
    characters: int

    @property
    def judgeable(self) -> bool:
        """Whether it ended in a way that says something about the chatbot, and holds a chatbot message."""
        return self.ending in JUDGEABLE and self.by_chatbot > 0

    @property
    def unfinished(self) -> bool:
        """Whether the run, gone on with, says more in it."""
        return self.ending is None or self.ending in RETRIED

    @property
    def persona_spoke(self) -> bool:
        """Whether it holds a message of the persona."""
        return self.turns > self.by_chatbot


def head_of(row: tuple[str, str, int, str | None, int, int, int]) -> Head:
    """The head whose columns HEADS are in `row`."""
    id, persona, repeat, ending, *counts = row
    return Head(id, persona, repeat, None if ending is None else Ending(ending), *counts)


def longest_first(heads: Iterable[Head]) -> tuple[Head, ...]:
    """By their characters; those of equal length stay in the order given."""
    return tuple(sorted(heads, key=lambda head: -head.characters))
