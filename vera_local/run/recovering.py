"""Saves what can be read of a damaged store into a new one. Guesses no text and no rating."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from vera_local.bundle import Rubric
from vera_local.errors import UserError
from vera_local.run import manifest
from vera_local.run.evaluate import bundle_of_run
from vera_local.run.folder import locked
from vera_local.run.intact import LOG, READY
from vera_local.run.log import stranded
from vera_local.run.schema import STEPS
from vera_local.run.set_aside import FILES, SCRATCH, copy, keep, stopped_at
from vera_local.run.soundness import RULES, is_rated_by, unsound
from vera_local.run.store import NAME, Store
from vera_local.run.unusable import UNREADABLE, unusable

TABLES = tuple(RULES)
"""Those that others refer to come before them."""

JUDGED = ("conversations", "messages", "verdicts", "ratings")
"""Tables whose loss makes ratings doubtful; these follow from what they hold, and are worked out again."""

PARENT = {"stages": ("session", "sessions", "session"), "usage": ("session", "sessions", "session")} | dict.fromkeys(
    ("messages", "rejected", "verdicts", "persona_checks", "ratings"), ("conversation", "conversations", "id")
)
"""Table -> its column that refers to another table, that table, and the column there."""

MOST_BYTES = 1 << 40
"""More is no size but damage."""

BEYOND = 100_000
"""Row numbers to try behind the last row that was read, where nobody knows the last one."""


@dataclass(frozen=True)
class Recovered:
    """What came of it. `kept_at`: where the damaged store lies now, None where the store is whole.

    `damaged`: tables not all of whose rows could be read; `rows`: table -> rows of the new store; `anew`: conversations
    that lost a message or may have, and are held (or imported) again; `rerated`: whether ratings are worked out again;
    `dropped`: how many commits of the store's log could not be read, at least.
    """

    kept_at: Path | None
    damaged: tuple[str, ...] = ()
    rows: tuple[tuple[str, int], ...] = ()
    anew: tuple[str, ...] = ()
    rerated: bool = False
    dropped: int = 0


def recover_run(folder: Path) -> Recovered:
    """Put a whole store in the place of a damaged one, which is kept beside it.

    Stopped in between, the same call begins again. UserError where the folder holds no run, is in use or not writable,
    and where nothing of the store can be read.
    """
    if manifest.read(folder) is None:
        raise manifest.missing(folder)
    with locked(folder):
        if not (folder / NAME).exists():
            raise UserError(f"{folder / NAME} is missing, so there is nothing to recover; restore it from a backup")
        try:
            return _recover(folder, _rubric(folder))
        except OSError as error:
            raise UserError(
                f"{folder}: the store cannot be copied ({error.strerror}); see to it and try again"
            ) from None
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise UserError(
                f"Nothing can be read of {folder / NAME} ({error}); restore it from a backup, make the run again in "
                "another folder, or judge the conversations again in a run that `vera-local import` makes of "
                "conversations.jsonl"
            ) from error


def _rubric(folder: Path) -> Rubric | None:
    """By which the run is rated; None where its bundle is no longer there."""
    try:
        return bundle_of_run(folder).rubric
    except UserError:
        return None


def _recover(folder: Path, rubric: Rubric | None) -> Recovered:
    for left in folder.glob(f"{SCRATCH}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=SCRATCH) as scratch:
        old, new = Path(scratch) / "old", Path(scratch) / "new"
        old.mkdir()
        new.mkdir()
        kept_at = stopped_at(folder)
        copy(kept_at or folder, old)
        dropped = stranded(old / LOG)
        if kept_at is None and not dropped.commits and _is_whole(old / NAME, rubric):
            (folder / READY).unlink(missing_ok=True)
            return Recovered(None)
        if dropped.commits and dropped.are_in(old / NAME):
            # What SQLite would read of it is older.
            (old / LOG).unlink()
        _fill(old / NAME)
        with Store.open(new):
            pass
        recovered = _save(old / NAME, new / NAME, rubric)
        kept_at = kept_at or keep(folder)
        _make_ready(new / NAME, folder)
    # What belonged to the old store would be taken for a part of the new one.
    for name in FILES[1:]:
        (folder / name).unlink(missing_ok=True)
    _put_in_place(folder)
    return Recovered(kept_at, *recovered, dropped.commits)


def _make_ready(store: Path, folder: Path) -> None:
    store.replace(folder / READY)


def _put_in_place(folder: Path) -> None:
    (folder / READY).replace(folder / NAME)


def _fill(file: Path) -> None:
    """Of a store that was cut short SQLite reads nothing, unless blanks stand for the pages that its head tells of."""
    with file.open("r+b") as store:
        head = store.read(32)
        size = int.from_bytes(head[16:18], "big") * int.from_bytes(head[28:32], "big")
        if head.startswith(b"SQLite format 3") and file.stat().st_size < size <= MOST_BYTES:
            store.truncate(size)


def _is_whole(file: Path, rubric: Rubric | None) -> bool:
    try:
        with closing(sqlite3.connect(file)) as db:
            version = db.execute("pragma user_version").fetchone()[0]
            if version > len(STEPS):
                raise UserError(f"{file.name} was written by a newer version of this program; use that version with it")
            return bool(version > 0 and _is_sound(db, rubric))
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def _is_sound(db: sqlite3.Connection, rubric: Rubric | None) -> bool:
    checked: bool = db.execute("pragma integrity_check").fetchall() == [("ok",)]
    tied = not db.execute("pragma foreign_key_check").fetchall()
    whole = checked and tied and not _gaps(db) and next(unsound(db, rubric), None) is None
    return whole and (rubric is None or is_rated_by(db, rubric))


def _gaps(db: sqlite3.Connection) -> set[str]:
    """Conversations without one of their turns."""
    rows = db.execute("select conversation from messages group by 1 having count(*) != max(turn) or min(turn) != 1")
    return {id for (id,) in rows}


def _save(
    old: Path, new: Path, rubric: Rubric | None
) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...], tuple[str, ...], bool]:
    """Copy what can be read; sqlite3.Error where that is nothing."""
    with closing(sqlite3.connect(old)) as source, closing(sqlite3.connect(new, isolation_level=None)) as target:
        source.execute("select count(*) from sqlite_master").fetchone()
        target.execute("pragma journal_mode = delete")
        target.execute("begin")
        unread = {table for table in TABLES if not _take(source, target, table)}
        damaged = tuple(table for table in TABLES if table in unread | _weed(target, rubric))
        unsure = _unsure(source, target) if "messages" in damaged else set()
        anew = _drop(target, unsure | _gaps(target))
        foreign = rubric is not None and not is_rated_by(target, rubric)
        rerated = bool(anew) or foreign or not set(damaged).isdisjoint(JUDGED)
        if rerated:
            target.execute("delete from ratings")
        target.execute("commit")
        rows = tuple((table, target.execute(f"select count(*) from {table}").fetchone()[0]) for table in TABLES)
        if not any(count for _, count in rows):
            raise sqlite3.DatabaseError("no row of it is readable")
        if not _is_sound(target, rubric):
            raise unusable(new, sqlite3.DatabaseError("what was saved is not sound"))
    return damaged, rows, anew, rerated


def _take(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> bool:
    """Copy the rows of a table as far as they can be read; whether all could."""
    try:
        there = {name for _, name, *_ in source.execute(f"pragma table_info({table})")}
    except UNREADABLE:
        return False
    ours = [name for _, name, *_ in target.execute(f"pragma table_info({table})") if name in there]
    if not ours:
        # Of a version without this table.
        return int(source.execute("pragma user_version").fetchone()[0]) < len(STEPS)
    reader = _Reader(source, table, ", ".join(ours))
    places = ", ".join("?" * len(ours))
    target.executemany(f"insert or ignore into {table} ({', '.join(ours)}) values ({places})", reader.rows())
    return reader.whole


def _weed(target: sqlite3.Connection, rubric: Rubric | None) -> set[str]:
    """Remove the rows that can be read and mean nothing; the tables that they were in."""
    rows = list(unsound(target, rubric))
    for table, row in rows:
        target.execute(f"delete from {table} where rowid = ?", (row,))
    return {table for table, _ in rows}


class _Reader:
    """The rows of a table: in order up to the first that cannot be read, and from there each by its number."""

    def __init__(self, db: sqlite3.Connection, table: str, columns: str) -> None:
        self._db = db
        self._table = table
        self._select = f"select rowid, {columns} from {table} not indexed"
        self.whole = True

    def rows(self) -> Iterator[tuple[object, ...]]:
        last = 0
        try:
            for number, *row in self._db.execute(f"{self._select} order by rowid"):
                yield tuple(row)
                last = number
            return
        except UNREADABLE:
            self.whole = False
        for number in range(last + 1, self._last(last) + 1):
            try:
                found = self._db.execute(f"{self._select} where rowid = ?", (number,)).fetchone()
            except UNREADABLE:
                continue
            if found is not None:
                yield found[1:]

    def _last(self, read: int) -> int:
        try:
            return int(self._db.execute(f"select max(rowid) from {self._table} not indexed").fetchone()[0])
        except UNREADABLE:
            return read + BEYOND


def _unsure(source: sqlite3.Connection, target: sqlite3.Connection) -> set[str]:
    """Conversations of which a message was lost by the index of messages, or that it does not tell of."""
    wanted: dict[str, int] = {}
    last, whole = "", False
    try:
        keys = "select conversation, turn from messages indexed by sqlite_autoindex_messages_1 order by 1, 2"
        for last, turn in source.execute(keys):
            wanted[last] = turn
        whole = True
    except UNREADABLE:
        # What it told of the last conversation may not be all.
        wanted.pop(last, None)
    turns = dict(target.execute("select conversation, count(*) from messages group by 1").fetchall())
    ids = {id for (id,) in target.execute("select id from conversations")} | turns.keys()
    return {id for id in ids if (turns.get(id, 0) != wanted.get(id, 0) if whole or id in wanted else True)}


def _drop(target: sqlite3.Connection, ids: set[str]) -> tuple[str, ...]:
    """Remove these conversations with all that belongs to them, and what belongs to none; their ids, in order."""
    target.executemany("delete from conversations where id = ?", [(id,) for id in ids])
    lost = set(ids)
    for table, (column, parent, key) in PARENT.items():
        orphans = f"from {table} where {column} not in (select {key} from {parent})"
        if parent == "conversations":
            lost |= {id for (id,) in target.execute(f"select distinct {column} {orphans}")}
        target.execute(f"delete {orphans}")
    return tuple(sorted(lost))
