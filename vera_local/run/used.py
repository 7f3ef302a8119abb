"""What a store holds of the work behind a run, by session: one process that worked on it. Knows nothing of engines."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple
from typing import Any

from vera_local.engine.seam import Usage
from vera_local.report.usage import SessionRow, StageRow, UsageRow


class Used:
    """Part of a store: what it writes is committed before it returns, and it raises as the store does."""

    def __init__(
        self, connection: sqlite3.Connection, commit: Callable[[], AbstractContextManager[sqlite3.Connection]]
    ) -> None:
        self._db = connection
        self._commit = commit

    def begin(self, started: str) -> int:
        """Enter a session; its number, which no other one has."""
        with self._commit() as db:
            entered = db.execute(
                "insert into sessions (session, started, wall_s, busy_s) select coalesce(max(session), 0) + 1, ?, 0, 0"
                " from sessions returning session",
                (started,),
            )
            (number,) = entered.fetchone()
        return int(number)

    def save(self, session: SessionRow, stages: Iterable[StageRow], rows: Iterable[UsageRow]) -> None:
        """Enter how far a session is, all or nothing, in the place of what was known of it.

        Unless more is to be committed with it, a power cut takes back neither this nor what was committed before.
        """
        with self._synced(), self._commit() as db:
            # No "replace": it would delete the session first, and what refers to it.
            db.execute(
                "insert into sessions values (?, ?, ?, ?, ?, ?, ?, ?) on conflict do update set"
                " wall_s = excluded.wall_s, busy_s = excluded.busy_s, peak_memory_bytes = excluded.peak_memory_bytes,"
                " peak_gpu_bytes = excluded.peak_gpu_bytes,"
                " restarts = excluded.restarts, part_of = excluded.part_of",
                astuple(session),
            )
            db.executemany("insert or replace into stages values (?, ?, ?, ?)", map(astuple, stages))
            db.executemany(f"insert or replace into usage values ({', '.join('?' * 15)})", map(_columns, rows))

    @contextmanager
    def _synced(self) -> Iterator[None]:
        """What is committed within waits for the disk, with all that is in the log before it: too slow for each row."""
        if self._db.in_transaction:
            yield
            return
        self._db.execute("pragma synchronous = full")
        try:
            yield
        finally:
            self._db.execute("pragma synchronous = normal")

    def sessions(self) -> tuple[SessionRow, ...]:
        """All sessions, the first one first."""
        return tuple(SessionRow(*row) for row in self._db.execute("select * from sessions order by session"))

    def stages(self) -> tuple[StageRow, ...]:
        """The stages of all sessions, each in the order in which they were entered."""
        return tuple(StageRow(*row) for row in self._db.execute("select * from stages order by session, rowid"))

    def rows(self) -> tuple[UsageRow, ...]:
        """What was asked in all sessions, each in the order in which it was entered."""
        return tuple(map(_row, self._db.execute("select * from usage order by session, rowid")))


def _columns(row: UsageRow) -> tuple[object, ...]:
    counts = (row.requests, row.failed, row.aborted)
    tokens = (*astuple(row.usage), row.distinct, *astuple(row.kept))
    return (row.session, row.stage, row.role, row.model, *counts, *tokens, row.busy_s)


def _row(columns: Sequence[Any]) -> UsageRow:
    session, stage, role, model, requests, failed, aborted, *tokens, busy = columns
    usage, distinct, kept = Usage(*tokens[:3]), tokens[3], Usage(*tokens[4:])
    return UsageRow(session, stage, role, model, requests, failed, aborted, usage, distinct, kept, busy)
