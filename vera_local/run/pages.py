"""What is still to be done in a store, page by page: a run of millions is never read whole. Knows no engine."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vera_local.conversation import JUDGEABLE, RETRIED, Ending, Speaker

SPOKE = "exists (select 1 from messages m where m.conversation = c.id and m.speaker = ?)"


def _among(endings: Iterable[Ending]) -> str:
    return f"({', '.join(repr(ending.value) for ending in sorted(endings))})"


FIT = f"c.ending in {_among(JUDGEABLE)} and {SPOKE}"
"""Conversations that say something about the chatbot; takes the chatbot's name as speaker."""


class Place(NamedTuple):
    """A conversation and its number in the run's order."""

    number: int
    id: str


class Pages:
    """Part of a store. Each page holds at most `limit` conversations behind the place `after`, in the run's order."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def unfinished(self, after: int, limit: int) -> list[Place]:
        """Conversations that have not ended."""
        return self._page("c.ending is null", (), after, limit)

    def unrated(self, judges: Sequence[str], after: int, limit: int) -> list[Place]:
        """Conversations that are fit to judge and that one of these judges has not rated."""
        return self._page(_unrated(judges), (Speaker.CHATBOT, *judges), after, limit)

    def unchecked(self, judge: str, personas: Sequence[str], after: int, limit: int) -> list[Place]:
        """Conversations that ended, in which one of these personas spoke that this judge has not rated."""
        return self._page(_UNCHECKED, (Speaker.PERSONA, judge, json.dumps(personas)), after, limit)

    def is_rated(self, conversation: str, judge: str) -> bool:
        """Whether this judge has rated it."""
        rows = self._db.execute("select 1 from ratings where conversation = ? and judge = ?", (conversation, judge))
        return rows.fetchone() is not None

    def count_unfinished(self) -> int:
        """How many have not ended."""
        return self._count("c.ending is null", ())

    def count_unrated(self, judges: Sequence[str]) -> int:
        """How many one of these judges has not rated."""
        return self._count(_unrated(judges), (Speaker.CHATBOT, *judges))

    def count_unchecked(self, judge: str, personas: Sequence[str]) -> int:
        """In how many this judge has not rated one of these personas."""
        return self._count(_UNCHECKED, (Speaker.PERSONA, judge, json.dumps(personas)))

    def _page(self, where: str, values: tuple[str, ...], after: int, limit: int) -> list[Place]:
        rows = self._db.execute(
            f"select c.place, c.id from conversations c where ({where}) and c.place > ? order by c.place limit ?",
            (*values, after, limit),
        )
        return [Place(*row) for row in rows]

    def _count(self, where: str, values: tuple[str, ...]) -> int:
        (count,) = self._db.execute(f"select count(*) from conversations c where {where}", values).fetchone()
        return int(count)


def _unrated(judges: Sequence[str]) -> str:
    missing = "not exists (select 1 from ratings r where r.conversation = c.id and r.judge = ?)"
    return f"{FIT} and ({' or '.join(missing for _ in judges) or 'false'})"


_UNCHECKED = (
    f"c.ending is not null and c.ending not in {_among(RETRIED)} and {SPOKE} and not exists"
    " (select 1 from persona_checks k where k.conversation = c.id and k.judge = ?)"
    " and c.persona in (select value from json_each(?))"
)
