"""Takes out of a run all that was said in it, and keeps what was found. Knows no rubric and no meaning of a text."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG
from typing import Any

from vera_local.errors import UserError
from vera_local.report.simulation import NAME as SIMULATION
from vera_local.run import manifest
from vera_local.run.evaluate import must_hold_run
from vera_local.run.folder import ENGINE_LOG, LOCK, MANIFEST, locked
from vera_local.run.intact import LOG as WAL
from vera_local.run.intact import READY
from vera_local.run.kept_bundle import FOLDER as BUNDLE
from vera_local.run.network import LOG as NETWORK
from vera_local.run.set_aside import BROKEN, SCRATCH
from vera_local.run.store import NAME as STORE
from vera_local.run.store import Store
from vera_local.run.sweep_notes import NAME as SWEEP
from vera_local.run.unusable import in_use, unusable

TRANSCRIPTS = "conversations.jsonl"

TEXTS: Mapping[str, tuple[str, ...]] = {
    "conversations": ("detail",),
    "messages": ("text",),
    "rejected": ("text",),
    "verdicts": ("text", "rationale", "detail"),
    "persona_checks": ("detail",),
}
"""Table -> its columns that can quote."""

QUOTING = frozenset({TRANSCRIPTS, "verdicts.csv", "verdicts.parquet", SIMULATION, "report.html", ENGINE_LOG})
"""Files that can quote; `vera-local score` makes those again that say something without a quotation."""

PAGE = b'<meta name="generator" content="vera_local '
"""Stands within the first HEAD bytes of each page of ours, which can be of any name."""

HEAD = 4096

EXPORTED = frozenset({"conversations", "evaluations"})
"""Folders of an export."""

KEPT = frozenset(
    {MANIFEST, LOCK, NETWORK, STORE, WAL, f"{STORE}-shm"}
    | {f"{name}.{kind}" for name in ("results", "questions", "scores") for kind in ("csv", "parquet")}
    | {"scores.json"}
)


@dataclass(frozen=True)
class Purged:
    """What a purge did. `left`: files in the folder that this program does not know, in which nothing was changed."""

    removed: tuple[Path, ...]
    left: tuple[Path, ...]


def purge_run(folder: Path) -> Purged:
    """Remove every text of the run; its ratings, answers, scores and counts stay, and its manifest says so.

    Stopped in between, the same call goes on; done again, it changes nothing. UserError where the folder holds no run,
    is in use, or cannot be written.
    """
    must_hold_run(folder)
    with locked(folder):
        mark = _begin(folder)
        _empty(folder, mark)
        removed, left = _remove(folder)
        _note(folder, mark, whole=True)
    return Purged(tuple(removed), tuple(left))


def _begin(folder: Path) -> str:
    """What stands in the place of the texts; noted before the first one goes, so that nobody works on a rest.

    It is the run's own: two runs that were purged must not be taken for runs of the same conversations.
    """
    begun = manifest.read(folder) or {}
    mark = str(begun.get(manifest.PURGED, {}).get("mark") or f"[purged {secrets.token_hex(4)}]")
    if manifest.PURGED not in begun:
        _note(folder, mark, whole=False)
    return mark


def _note(folder: Path, mark: str, *, whole: bool) -> None:
    begun: dict[str, Any] = manifest.read(folder) or {}
    before = begun.get(manifest.PURGED, {})
    if before.get("whole"):
        return
    now = datetime.now(UTC).isoformat(timespec="seconds")
    manifest.save(folder, begun | {manifest.PURGED: {"mark": mark, "began": before.get("began", now), "whole": whole}})


def _empty(folder: Path, mark: str) -> None:
    """Every text in the store becomes the mark, and no page of the file keeps what was there; empty ones stay empty."""
    with Store.open(folder):
        pass  # Whatever its version, its tables are now as they are known here.
    file = folder / STORE
    try:
        with closing(sqlite3.connect(file, isolation_level=None)) as db:
            db.execute("pragma secure_delete = on")
            db.execute("pragma temp_store = memory")
            db.execute("begin immediate")
            for table, column in ((table, column) for table, columns in TEXTS.items() for column in columns):
                # An answer is the rubric's own words.
                kept = " and text is not answer" if (table, column) == ("verdicts", "text") else ""
                db.execute(f"update {table} set {column} = ? where trim({column}) != '' {kept}", (mark,))
            db.execute("commit")
            db.execute("vacuum")
            busy, *_ = db.execute("pragma wal_checkpoint(truncate)").fetchone()
    except sqlite3.Error as error:
        raise unusable(file, error) from error
    if busy:
        # What was read before the purge stays in the file for as long as somebody reads it.
        raise in_use(file)


def _remove(folder: Path) -> tuple[list[Path], list[Path]]:
    removed, left = [], []
    for file, quotes in _others(folder):
        if not quotes:
            left.append(file)
            continue
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(
                f"{file}: cannot be removed ({error.strerror}); see to it and run the same command again"
            ) from None
        removed.append(file)
    return removed, left


def _others(folder: Path) -> Iterator[tuple[Path, bool]]:
    """All files beneath the folder but those that stay, and whether each is one of ours that can quote; the runs of a
    sweep share what their engines print."""
    for place, folders, names in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(name for name in folders if here != folder or name != BUNDLE)
        parts = here.relative_to(folder).parts
        exported = not EXPORTED.isdisjoint(parts) or any(part.startswith((BROKEN, SCRATCH)) for part in parts)
        for name in sorted(names):
            if here != folder or name not in KEPT:
                yield here / name, exported or _quotes(name) or _is_page(here / name)
    shared = folder.parent / ENGINE_LOG
    if (folder.parent / SWEEP).exists() and shared.exists():
        yield shared, True


def _quotes(name: str) -> bool:
    """Whether a file of that name is one of ours that can quote, or what a kill left of one."""
    return name in {*QUOTING, READY} or name.startswith(tuple(f".{of}." for of in QUOTING))


def _is_page(file: Path) -> bool:
    """Whether a file is a page of ours; what cannot be read and what only leads to one is none."""
    try:
        if not S_ISREG(file.lstat().st_mode):
            return False
        with file.open("rb") as page:
            return PAGE in page.read(HEAD)
    except OSError:
        return False
