"""What a process does for a run is in its store while it goes on, and whatever ends it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import NO_USAGE, ChatMessage, EngineError, Request, Sampling, Usage
from vera_local.errors import UserError
from vera_local.run import schema
from vera_local.run.ledger import SECONDS, Ledger, read_usage
from vera_local.run.memory import Peak
from vera_local.run.store import NAME, Store

ASKED = Request((ChatMessage("user", "one two three"),), Sampling(temperature=0, top_p=1, max_tokens=9, seed=1))
COST = Usage(prompt=4, output=3)
"""What `ASKED` costs on an engine that says "so it is"."""


class Time:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def engine() -> FakeEngine:
    return FakeEngine(lambda request: "so it is")


def nothing() -> None:
    return None


def peak(size: int | None = None) -> Peak:
    return Peak(lambda: size, nothing)


async def test_each_role_of_each_stage_is_counted_with_what_was_kept(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store, Ledger(store, peak=peak()) as ledger:
        replicas = [ledger.metered(engine(), "judge", "judge", "m") for _ in range(2)]
        other = ledger.metered(engine(), "judge", "judge", "n")
        with ledger.stage("judge"):
            replies = await asyncio.gather(*(e.generate(ASKED) for e in (*replicas, other)))
            ledger.kept("judge", "judge", "m", replies[0].usage)
            ledger.kept("simulate", "chatbot", "somebody's", Usage(9, 0, 2))
    rows = {(r.stage, r.role, r.model): r for r in read_usage(tmp_path)}
    both, one, theirs = (
        rows["judge", "judge", "m"],
        rows["judge", "judge", "n"],
        rows["simulate", "chatbot", "somebody's"],
    )
    assert (both.requests, both.usage, both.kept, both.distinct) == (2, COST + COST, COST, 4)
    assert (one.requests, one.usage, one.kept) == (1, COST, NO_USAGE)
    assert (theirs.requests, theirs.usage, theirs.kept) == (0, NO_USAGE, Usage(9, 0, 2))
    assert {r.session for r in rows.values()} == {1}


async def test_stages_that_overlap_have_each_their_own_time(tmp_path: Path) -> None:
    time, held = Time(), asyncio.get_running_loop().create_future()
    with Store.open(tmp_path) as store, Ledger(store, time, peak()) as ledger:
        time.now += 5
        with ledger.stage("simulate"):
            time.now += 10
            with ledger.stage("judge"), ledger.stage("judge"):
                metered = ledger.metered(FakeEngine(lambda request: held), "judge", "judge", "m")
                task = asyncio.create_task(metered.generate(ASKED))
                while not metered.requests:  # type: ignore[attr-defined]
                    await asyncio.sleep(0)
                time.now += 20
                held.set_result("so it is")
                await task
                time.now += 30
        with ledger.stage("judge"):
            time.now += 3
    with Store.open(tmp_path) as store:
        stages = {s.stage: (s.wall_s, s.busy_s) for s in store.used.stages()}
        assert stages == {"simulate": (60, 0), "judge": (53, 20)}
        assert [(s.wall_s, s.busy_s) for s in store.used.sessions()] == [(68, 20)]
        assert [r.busy_s for r in store.used.rows()] == [20]


async def test_a_kill_loses_no_more_than_the_pause_between_two_entries(tmp_path: Path) -> None:
    """Read from another connection, which sees only what was committed."""
    time = Time()
    with Store.open(tmp_path) as store, Ledger(store, time, peak()) as ledger, ledger.stage("judge"):
        metered = ledger.metered(engine(), "judge", "judge", "m")
        await metered.generate(ASKED)
        assert read_usage(tmp_path) == ()
        time.now += SECONDS
        await metered.generate(ASKED)
        assert [r.requests for r in read_usage(tmp_path)] == [2]
        time.now += SECONDS - 1
        ledger.kept("judge", "judge", "m", COST)
        assert [r.kept for r in read_usage(tmp_path)] == [NO_USAGE]
        time.now += 1
        ledger.kept("judge", "judge", "m", COST)
        assert [r.kept for r in read_usage(tmp_path)] == [COST + COST]


async def test_a_stage_that_fails_is_entered_and_its_failure_is_what_is_told(tmp_path: Path) -> None:
    with (
        Store.open(tmp_path) as store,
        pytest.raises(EngineError, match="gone"),
        Ledger(store, peak=peak()) as ledger,
        ledger.stage("judge"),
    ):
        await ledger.metered(engine(), "judge", "judge", "m").generate(ASKED)
        raise EngineError("gone")
    assert [r.requests for r in read_usage(tmp_path)] == [1]


def fill(store: Store) -> None:
    """Let the store's file not grow any more."""
    (pages,) = store._db.execute("pragma page_count").fetchone()
    store._db.execute(f"pragma max_page_count = {pages}")


def many(ledger: Ledger) -> None:
    """More than a page of rows."""
    for n in range(200):
        ledger.kept("judge", "judge", f"m{n}", COST)


async def test_a_full_disk_is_the_store_s_error(tmp_path: Path) -> None:
    with (
        Store.open(tmp_path) as store,
        pytest.raises(UserError, match="No space is left to write"),
        Ledger(store, peak=peak()) as ledger,
        ledger.stage("judge"),
    ):
        many(ledger)
        fill(store)


async def test_a_full_disk_hides_no_other_failure(tmp_path: Path) -> None:
    with (
        Store.open(tmp_path) as store,
        pytest.raises(EngineError, match="gone"),
        Ledger(store, peak=peak()) as ledger,
        ledger.stage("judge"),
    ):
        many(ledger)
        fill(store)
        raise EngineError("gone")


def test_each_entry_waits_for_the_disk_and_nothing_else_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    connect = sqlite3.connect

    def heard(*given: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **named)
        connection.set_trace_callback(said.append)
        return connection

    monkeypatch.setattr("sqlite3.connect", heard)
    clock = Time()
    with Store.open(tmp_path) as store, Ledger(store, clock, peak()) as ledger:
        for _ in range(5):
            store.begin([])
            clock.now += SECONDS / 2
            ledger.touch()
    settings = [line.split()[-1] if "synchronous" in line else "commit" for line in said if not _is_other(line)]
    first, *entries = "".join(f"{word} " for word in settings).split("full commit normal")
    # The session, five messages of which two are followed by an entry, and the end of the session.
    assert len(entries) == 3 and "full" not in first and not any("full" in rest for rest in entries)


def _is_other(statement: str) -> bool:
    return statement.lower() != "commit" and not statement.startswith("pragma synchronous")


async def test_every_session_has_a_number_of_its_own(tmp_path: Path) -> None:
    """Whatever clocks say, and however the one before ended."""
    for _ in range(2):
        with Store.open(tmp_path) as store:
            Ledger(store, peak=peak()).__enter__()
    with Store.open(tmp_path) as store, Ledger(store, Time(), peak(5)) as ledger, ledger.stage("judge"):
        await ledger.metered(engine(), "judge", "judge", "m").generate(ASKED)
    with Store.open(tmp_path) as store:
        assert [s.session for s in store.used.sessions()] == [1, 2, 3]
        assert [s.peak_memory_bytes for s in store.used.sessions()] == [None, None, 5]
        assert [r.session for r in store.used.rows()] == [3]


async def test_prompts_are_forgotten_with_their_stage(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store, Ledger(store, peak=peak()) as ledger:
        metered = ledger.metered(engine(), "judge", "judge", "m")
        for _ in range(2):
            with ledger.stage("judge"):
                await metered.generate(ASKED)
                await metered.generate(ASKED)
    assert [r.distinct for r in read_usage(tmp_path)] == [8]


def test_a_store_of_the_version_before_has_no_record_and_gets_one(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        db.executescript("".join(schema.STEPS[:2]))
        db.execute("insert into conversations values ('b-1', 0, 'b', 1, 'turns', '')")
        db.execute("pragma user_version = 2")
        db.commit()
    assert read_usage(tmp_path) == ()
    with Store.open(tmp_path) as store, Ledger(store, peak=peak()) as ledger:
        ledger.kept("judge", "judge", "m", COST)
        assert [head.id for head in store.heads()] == ["b-1"]
    assert [r.kept for r in read_usage(tmp_path)] == [COST]
