"""What was committed and SQLite would drop of a log is found; what it drops rightly, and what is old, is not."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from vera_local.run.log import FRAME, HEAD, stranded

PAGE = 4096
STEP = FRAME + PAGE


def opened(file: Path) -> sqlite3.Connection:
    db = sqlite3.connect(file, isolation_level=None)
    # So little is held in memory that a transaction goes to the log before its end.
    for setting in ("journal_mode = wal", "synchronous = off", "wal_autocheckpoint = 0", "cache_size = 3"):
        db.execute(f"pragma {setting}")
    db.execute("create table if not exists t (a, b unique)")
    return db


def add(db: sqlite3.Connection, rows: int, characters: int = 700) -> None:
    db.execute("begin")
    db.executemany(
        "insert into t values (?, ?)", ((os.urandom(8), "x" * characters + str(n)) for n in numbers(db, rows))
    )


def numbers(db: sqlite3.Connection, rows: int) -> range:
    last: int = db.execute("select coalesce(max(rowid), 0) from t").fetchone()[0]
    return range(last, last + rows)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of six commits, as if its process had been killed."""
    with closing(opened(tmp_path / "at-work")) as db:
        for _ in range(5):
            add(db, 3)
            db.execute("commit")
        (tmp_path / "log").write_bytes((tmp_path / "at-work-wal").read_bytes())
    return tmp_path / "log"


def ends_of_commits(log: Path) -> list[int]:
    content = log.read_bytes()
    ends = range(HEAD + STEP, len(content) + 1, STEP)
    return [end for end in ends if content[end - STEP + 4 : end - STEP + 8] != bytes(4)]


def flip(file: Path, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)


def test_a_whole_log_an_empty_one_and_none_are_whole(log: Path, tmp_path: Path) -> None:
    assert stranded(log).commits == stranded(tmp_path / "none").commits == 0
    (tmp_path / "empty").touch()
    assert stranded(tmp_path / "empty").commits == 0


def test_each_bit_that_a_later_commit_stands_on_is_missed(log: Path) -> None:
    *_, last, _ = ends_of_commits(log)
    heads = [8 * (HEAD + frame * STEP) + bit for frame in (5,) for bit in range(0, 8 * FRAME, 3)]
    draw = random.Random(1)
    pages = [8 * draw.randrange(HEAD + FRAME, last) + draw.randrange(8) for _ in range(40)]
    for bit in (*range(0, 8 * HEAD, 3), *heads, *pages):
        flip(log, bit)
        assert stranded(log).commits > 0, bit
        flip(log, bit)


def test_it_counts_the_commits_behind(log: Path) -> None:
    third = ends_of_commits(log)[2]
    flip(log, 8 * (third + FRAME + 9))
    assert stranded(log).commits == len(ends_of_commits(log)) - 3


def test_a_part_that_was_overwritten_is_found(log: Path) -> None:
    content = log.read_bytes()
    for at, size in ((0, PAGE), (HEAD + STEP, 2 * STEP), (3 * PAGE, 512)):
        log.write_bytes(content[:at] + bytes(size) + content[at + size :])
        assert stranded(log).commits > 0


def test_a_log_that_ends_anywhere_looks_as_if_it_had_ended(log: Path) -> None:
    content, draw = log.read_bytes(), random.Random(2)
    for size in (*range(30, 35), *(draw.randrange(len(content)) for _ in range(30))):
        log.write_bytes(content[:size])
        assert stranded(log).commits == 0


def test_what_a_checkpoint_copied_is_known(tmp_path: Path) -> None:
    file, log = tmp_path / "run", tmp_path / "run-wal"
    with closing(opened(file)) as db:
        for _ in range(5):
            add(db, 3)
            db.execute("commit")
        flip(log, 8 * (HEAD + 3 * STEP + 99))
        assert stranded(log).commits > 0 and not stranded(log).are_in(file)
        db.execute("pragma wal_checkpoint(passive)")
        assert stranded(log).are_in(file)


def act(draw: random.Random, db: sqlite3.Connection, reader: sqlite3.Connection) -> None:
    """One of the things that a program does to its store."""

    def written(end: str) -> None:
        add(db, draw.choice([1, 2, 40]), draw.choice([10, 300, 3000]))
        if draw.random() < 0.5:
            db.execute("update t set a = ? where rowid % 3 = ?", (draw.random(), draw.randrange(3)))
        db.execute(end)

    def read() -> None:
        reader.execute("commit" if reader.in_transaction else "begin")
        reader.execute("select count(*) from t").fetchone()

    def copied() -> None:
        db.execute("pragma wal_checkpoint").fetchone()

    deeds: list[Callable[[], object]] = [lambda: written("commit"), lambda: written("rollback"), read, copied]
    draw.choices(deeds, [4, 2, 1, 1])[0]()


@pytest.mark.parametrize("seed", range(8))
def test_nothing_that_a_program_does_or_a_kill_leaves_is_taken_for_damage(tmp_path: Path, seed: int) -> None:
    """A kill leaves what was written up to then: in its midst, or between two transactions."""
    draw, place = random.Random(seed), tmp_path / "0"
    place.mkdir()
    for life in range(1, 5):
        left = tmp_path / str(life)
        left.mkdir()
        with closing(opened(place / "run")) as db, closing(opened(place / "run")) as reader:
            for _ in range(draw.randrange(1, 8)):
                act(draw, db, reader)
                assert stranded(place / "run-wal").commits == 0
            if draw.random() < 0.5:
                add(db, draw.choice([1, 60]))
            for file in place.glob("run*"):
                (left / file.name).write_bytes(file.read_bytes())
            if db.in_transaction:
                db.execute("rollback")
        assert stranded(left / "run-wal").commits == 0
        place = left
