"""A store opened by somebody who only looks at it. Knows no table, and never makes, changes or brings up a file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from vera_local.errors import UserError
from vera_local.run.folder import at_work
from vera_local.run.schema import STEPS


def connect_to_look(file: Path) -> sqlite3.Connection:
    """A connection that can only read; what a run at work writes at the same time, it sees from one read to the next.

    UserError where there is no store, or one of another version of this program.
    """
    if not file.is_file():
        raise UserError(f"{file} is missing, and with it the run; restore it or name another folder")
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?{_mode(file)}", uri=True, isolation_level=None)
    try:
        _must_be_current(connection.execute("pragma user_version").fetchone()[0], file)
    except BaseException:
        connection.close()
        raise
    return connection


def _mode(file: Path) -> str:
    """A reader of a store that nobody has open would leave files beside it, unless it takes the store for immutable."""
    quiet = not file.with_name(f"{file.name}-wal").exists() and not at_work(file.parent)
    return "mode=ro&immutable=1" if quiet else "mode=ro"


def _must_be_current(version: int, file: Path) -> None:
    if version > len(STEPS):
        raise UserError(f"{file} was written by a newer version of this program; use that version with it")
    if version < len(STEPS):
        raise UserError(
            f"{file} was written by an older version of this program; "
            f"`vera-local score {file.parent}` makes it one of this version"
        )
