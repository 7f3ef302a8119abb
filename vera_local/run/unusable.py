"""What to tell of a store that cannot be read or written, and what to do then. Knows no table."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from vera_local.errors import UserError

UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What sqlite3 raises of a damaged file: the message itself may quote bytes that are no text."""


def unusable(file: Path, error: Exception) -> UserError:
    """What to tell of a store that cannot be read or written."""
    if "locked" in str(error):
        return in_use(file)
    if "full" in str(error):
        return UserError(f"No space is left to write {file}: free some and run the same command again.")
    if isinstance(error, UnicodeDecodeError):
        return damaged(file, "what it says of its own tables cannot be read")
    if any(word in str(error) for word in ("malformed", "not a database", "disk image")):
        return damaged(file, str(error))
    return UserError(
        f"Cannot use {file} ({error}); see that it is whole and may be written to, copy its folder to where it may, "
        "or name another folder"
    )


def in_use(file: Path) -> UserError:
    """What to tell of a store that another program has open, where it must not."""
    return UserError(f"{file} is locked by another program; close it there and run the same command again.")


def damaged(file: Path, fault: str) -> UserError:
    """What to tell of a store of which something is not as this program writes it."""
    return UserError(f"{file} is damaged ({fault}); `vera-local recover {file.parent}` saves what can be read of it")
