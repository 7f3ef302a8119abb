"""The damaged stores that lie beside a run's own one. Knows not what is damaged in them."""

from __future__ import annotations

import filecmp
import shutil
import tempfile
from pathlib import Path

from vera_local.run.folder import STORE
from vera_local.run.intact import LOG, READY

FILES = (STORE, LOG, f"{STORE}-shm")
"""A store, and what SQLite keeps beside it while it is open; the first is named last where order counts."""

SCRATCH = f".{STORE}."
"""How the folders of copies that a recovery works on are called, before what is random."""

BROKEN = f"{STORE}.broken-"
"""How the folders of damaged stores are called, before their number."""


def stopped_at(folder: Path) -> Path | None:
    """Where a recovery that was stopped before its end kept the damaged store, of which it may have left only a part
    in its place; None where none was stopped, and where another store is there meanwhile."""
    kept = _last_kept(folder) if (folder / READY).exists() else None
    left = [name for name in (STORE, LOG) if (folder / name).exists()]
    return kept if kept and all(_are_the_same(kept / name, folder / name) for name in left) else None


def _are_the_same(one: Path, other: Path) -> bool:
    return one.exists() and filecmp.cmp(one, other, shallow=False)


def keep(folder: Path) -> Path:
    """The damaged store as it is, in a folder of its own that appears at once."""
    kept = folder / f"{BROKEN}{_number(_last_kept(folder)) + 1}"
    part = Path(tempfile.mkdtemp(dir=folder, prefix=SCRATCH))
    copy(folder, part)
    part.rename(kept)
    return kept


def _last_kept(folder: Path) -> Path | None:
    """The damaged store that was kept last, where there is one."""
    return max((kept for kept in folder.glob(f"{BROKEN}*") if _number(kept)), key=_number, default=None)


def _number(kept: Path | None) -> int:
    """The number of a damaged store that was kept; 0 where it is none."""
    told = "" if kept is None else kept.name.removeprefix(BROKEN)
    return int(told) if told.isascii() and told.isdigit() else 0


def copy(folder: Path, to: Path) -> None:
    """Copy a store with what lies beside it."""
    for name in FILES:
        if (folder / name).exists():
            shutil.copyfile(folder / name, to / name)
