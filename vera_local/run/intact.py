"""Whether a store may be opened as it lies there, by what lies beside it. Knows no table, and changes nothing."""

from __future__ import annotations

from pathlib import Path

from vera_local.run.folder import STORE, at_work
from vera_local.run.log import stranded
from vera_local.run.unusable import damaged

LOG = f"{STORE}-wal"

READY = f"{STORE}.recovered"
"""A new store that is whole and only waits to take the old one's place."""


def must_be_intact(folder: Path) -> None:
    """UserError where SQLite would open the store of a run without what was committed; OSError where its log cannot be
    read."""
    if (folder / READY).exists():
        raise damaged(folder / STORE, "what was recovered of it is not yet in its place")
    # The log of a run at work changes while it is read. To ask for that would give back a lock of this very process.
    if (lost := stranded(folder / LOG).commits) and not at_work(folder):
        raise damaged(folder / STORE, f"a part of {LOG} cannot be read, and {lost} commits lie behind it")
