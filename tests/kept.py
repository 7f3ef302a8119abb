"""What a run's folder holds, to be compared. Knows no command and no fault."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from vera_local.run.store import NAME
from vera_local.seed import derive

TABLES = {
    "messages": "select conversation, turn, speaker, text from messages order by 1, 2",
    "verdicts": "select conversation, judge, question, place, state, answer from verdicts order by 1, 2, 3",
    "ratings": "select conversation, judge, dimension, rating, decided_by from ratings order by 1, 2, 3",
    "endings": "select id, ending from conversations order by 1",
}

FILES = ("results.csv", "conversations.jsonl", "scores.json")

Contents = dict[str, list[tuple[Any, ...]]]


def contents(folder: Path) -> Contents:
    """All that was said and decided; nothing where there is no store yet. The store must be sound."""
    if not (folder / NAME).exists():
        return {name: [] for name in TABLES}
    with closing(sqlite3.connect(folder / NAME)) as db:
        assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
        made = db.execute("select count(*) from sqlite_master where name = 'ratings'").fetchone()[0]
        return {name: db.execute(query).fetchall() if made else [] for name, query in TABLES.items()}


def finished_seeds(kept: Contents, seed: int) -> set[int]:
    """The seeds of all requests whose result is there, in a run of that seed."""
    said = {derive(seed, id, turn) if turn % 2 == 0 else derive(seed, id, turn, 0) for id, turn, *_ in kept["messages"]}
    judged = {derive(seed, id, "judge", judge, question) for id, judge, question, *_ in kept["verdicts"]}
    return said | judged


def must_hold(folder: Path, before: Contents) -> None:
    """Every message, verdict and rating that was there still is."""
    now = contents(folder)
    assert all(set(before[table]) <= set(now[table]) for table in ("messages", "verdicts", "ratings"))


def must_be_the_same(folder: Path, other: Path) -> None:
    """Two runs said, decided and published the same."""
    assert contents(folder) == contents(other)
    for name in FILES:
        assert (folder / name).read_bytes() == (other / name).read_bytes()
