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

    def rejected(self, conversation: str) -> list[tuple[int, Rejected]]:
        """(turn, try) of all in a conversation that could not stand, in order."""
        rows = self._db.execute(
            "select turn, attempt, rules, text, prompt_tokens, cached_tokens, output_tokens"
            " from rejected where conversation = ? order by turn, attempt",
            (conversation,),
        )
        return [
            (turn, Rejected(attempt, tuple(map(Rule, json.loads(rules))), text, Usage(*usage)))
            for turn, attempt, rules, text, *usage in rows
        ]

    def sides(self, conversation: str) -> list[Side]:
        """What is known of each side of a conversation that has said something."""
        rows = self._db.execute(
            "select speaker, count(*), sum(early), max(left_out) from messages where conversation = ? group by 1",
            (conversation,),
        )
        return [Side(Speaker(speaker), *counts) for speaker, *counts in rows]

    def add_check(self, conversation: str, judge: str, check: PersonaCheck) -> None:
        """What a judge found of the persona's side of a conversation."""
        c, u = check, check.usage
        row = (conversation, judge, c.realism, c.role_keeping, c.detail, u.prompt, u.cached, u.output)
        with self._commit() as db:
            db.execute("insert or replace into persona_checks values (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def checks(self, conversation: str) -> list[tuple[str, PersonaCheck]]:
        """(judge, check) of a conversation, by judge."""
        rows = self._db.execute(
            "select judge, realism, role_keeping, detail, prompt_tokens, cached_tokens, output_tokens"
            " from persona_checks where conversation = ? order by judge",
            (conversation,),
        )
        return [
            (judge, PersonaCheck(realism, role_keeping, detail, Usage(*usage)))
            for judge, realism, role_keeping, detail, *usage in rows
        ]

    def checked(self, judge: str) -> frozenset[str]:
        """The conversations whose persona this judge has rated."""
        rows = self._db.execute("select conversation from persona_checks where judge = ?", (judge,))
        return frozenset(conversation for (conversation,) in rows)

    def detail(self, conversation: str) -> str:
        """Why a conversation ended, in words; empty where it is not told."""
        return str(self._db.execute("select detail from conversations where id = ?", (conversation,)).fetchone()[0])
