"""What a store tells somebody who looks at many conversations at once. Reads no text but to search it."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vera_local.conversation import JUDGEABLE, Ending, Speaker
from vera_local.judge import Confidence

_SHORT = 500
"""Conversations named in one query; SQLite takes at most 999 of older versions."""


class Sight(NamedTuple):
    """A conversation at its place (from 1) in the run's order."""

    place: int
    id: str
    persona: str
    ending: Ending | None
    turns: int


class Counts(NamedTuple):
    """How far a run is; `judgeable`: conversations that are fit to judge."""

    conversations: int
    ended: int
    messages: int
    judgeable: int


class Judged(NamedTuple):
    """How far a judge is: verdicts, and conversations that it has rated."""

    judge: str
    verdicts: int
    rated: int


class Doubts(NamedTuple):
    """Answers of a conversation, by all judges, that are uncertain, and those that are missing."""

    uncertain: int = 0
    missing: int = 0


class Glances:
    """Part of a store; it writes nothing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def counts(self) -> Counts:
        """How far conversations are."""
        endings = ", ".join(f"'{ending}'" for ending in sorted(JUDGEABLE))
        replied = f"exists (select 1 from messages where conversation = c.id and speaker = '{Speaker.CHATBOT}')"
        row = self._db.execute(
            "select count(*), count(ending), (select count(*) from messages),"
            f" coalesce(sum(ending in ({endings}) and {replied}), 0) from conversations c"
        )
        return Counts(*row.fetchone())

    def judged(self) -> tuple[Judged, ...]:
        """How far each judge is that gave a verdict or a rating, by name."""
        verdicts = dict(self._db.execute("select judge, count(*) from verdicts group by judge").fetchall())
        rated = dict(
            self._db.execute("select judge, count(distinct conversation) from ratings group by judge").fetchall()
        )
        return tuple(Judged(j, verdicts.get(j, 0), rated.get(j, 0)) for j in sorted(verdicts | rated))

    def sights(self) -> tuple[Sight, ...]:
        """All conversations, in the run's order."""
        turns = dict(self._db.execute("select conversation, count(*) from messages group by conversation").fetchall())
        rows = self._db.execute("select id, persona, ending from conversations order by place").fetchall()
        return tuple(
            Sight(place, id, persona, None if ending is None else Ending(ending), turns.get(id, 0))
            for place, (id, persona, ending) in enumerate(rows, 1)
        )

    def doubts(self, conversations: Iterable[str]) -> dict[str, Doubts]:
        """Of each of these conversations that has a verdict."""
        found: dict[str, Doubts] = {}
        for id, answer, confidence in self._answers(list(conversations)):
            uncertain, missing = found.get(id, Doubts())
            doubtful = answer is not None and confidence is not None and _doubtful(answer, confidence)
            found[id] = Doubts(uncertain + doubtful, missing + (answer is None))
        return found

    def _answers(self, ids: list[str]) -> Iterator[tuple[str, str | None, str | None]]:
        for first in range(0, len(ids), _SHORT):
            some = ids[first : first + _SHORT]
            names = ", ".join("?" * len(some))
            yield from self._db.execute(
                f"select conversation, answer, confidence from verdicts where conversation in ({names})", some
            )

    def holding(self, words: str) -> dict[str, tuple[int, ...]]:
        """Conversation -> the turns that hold these words, in capitals or not; read message by message."""
        pattern = words_pattern(words)
        found: dict[str, tuple[int, ...]] = {}
        for id, turn, text in self._db.execute("select conversation, turn, text from messages"):
            if pattern.search(text):
                found[id] = (*found.get(id, ()), turn)
        return found

    def text(self, conversation: str, turn: int) -> str:
        """What was said in one turn; KeyError where nothing was."""
        row = self._db.execute(
            "select text from messages where conversation = ? and turn = ?", (conversation, turn)
        ).fetchone()
        if row is None:
            raise KeyError(conversation, turn)
        return str(row[0])


def words_pattern(words: str) -> re.Pattern[str]:
    """What finds these words in a text, in capitals or not."""
    return re.compile(re.escape(words), re.IGNORECASE)


def _doubtful(answer: str, confidence: str) -> bool:
    return bool(Confidence(json.loads(confidence)).doubt(answer))
