"""What a store holds of how personas were played, beside the messages. Knows nothing of what it means."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from vera_local.conversation import Speaker
from vera_local.engine.seam import Usage
from vera_local.judge import PersonaCheck
from vera_local.simulate import Rejected, Rule


class Side(NamedTuple):
    """One side of a conversation: its messages, how many end signals came too early, and the most earlier messages
    that were kept from it for want of room."""

    conversation: str
    speaker: Speaker
    messages: int
    early: int
    left_out: int


class Simulated:
    """Part of a store: what it writes is committed before it returns, and it raises as the store does."""

    def __init__(
        self, connection: sqlite3.Connection, commit: Callable[[], AbstractContextManager[sqlite3.Connection]]
    ) -> None:
        self._db = connection
        self._commit = commit

    def add_rejected(self, conversation: str, turn: int, rejected: Rejected) -> None:
        """A try at a turn (1-based) that could not stand; asked again after a break it takes its own place."""
        r, u = rejected, rejected.usage
        row = (conversation, turn, r.attempt, json.dumps(r.rules), r.text, u.prompt, u.cached, u.output)
        with self._commit() as db:
            db.execute("insert or replace into rejected values (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def rejected(self) -> list[tuple[str, int, Rejected]]:
        """(conversation, turn, try) of all that could not stand, in the run's order."""
        rows = self._db.execute(
            "select r.conversation, turn, attempt, rules, text, prompt_tokens, cached_tokens, output_tokens"
            " from rejected r join conversations c on c.id = r.conversation order by c.place, turn, attempt"
        )
        return [
            (conversation, turn, Rejected(attempt, tuple(map(Rule, json.loads(rules))), text, Usage(*usage)))
            for conversation, turn, attempt, rules, text, *usage in rows
        ]

    def sides(self) -> list[Side]:
        """What is known of each side of each conversation that has said something, in the run's order."""
        rows = self._db.execute(
            "select m.conversation, speaker, count(*), sum(early), max(left_out)"
            " from messages m join conversations c on c.id = m.conversation group by 1, 2 order by c.place, 2"
        )
        return [Side(conversation, Speaker(speaker), *counts) for conversation, speaker, *counts in rows]

    def add_check(self, conversation: str, judge: str, check: PersonaCheck) -> None:
        """What a judge found of the persona's side of a conversation."""
        c, u = check, check.usage
        row = (conversation, judge, c.realism, c.role_keeping, c.detail, u.prompt, u.cached, u.output)
        with self._commit() as db:
            db.execute("insert or replace into persona_checks values (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def checks(self) -> list[tuple[str, str, PersonaCheck]]:
        """(conversation, judge, check), in the run's order."""
        rows = self._db.execute(
            "select k.conversation, judge, realism, role_keeping, k.detail, prompt_tokens, cached_tokens,"
            " output_tokens from persona_checks k join conversations c on c.id = k.conversation order by c.place, judge"
        )
        return [
            (conversation, judge, PersonaCheck(realism, role_keeping, detail, Usage(*usage)))
            for conversation, judge, realism, role_keeping, detail, *usage in rows
        ]

    def details(self) -> dict[str, str]:
        """Conversation -> why it ended, for those of which it is told."""
        return dict(self._db.execute("select id, detail from conversations where detail != ''").fetchall())
