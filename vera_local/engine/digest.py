"""Digests of a model's files, so that a run can say which model it used. Knows nothing of what the files mean."""

from __future__ import annotations

import hashlib
import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from vera_local.engine.cache import cache_folder

SUFFIXES = frozenset({".json", ".jinja", ".model", ".py", ".safetensors", ".tiktoken", ".txt"})
"""Config, tokenizer, chat template, weights, and code, which is run only where a person confirms it."""


class Known(TypedDict):
    """A digest and what the file looked like when it was taken."""

    stamp: list[int]
    sha256: str


def model_digests(folder: Path) -> dict[str, str]:
    """File name -> sha256 (hexadecimal) of each model file in `folder`, by name.

    A file is read again only when its size, times of change or inode differ from the last time.
    """
    store = cache_folder() / "digests.json"
    known = _load(store)
    files = model_files(folder)
    found = {str(path): _known_or_read(path, known.get(str(path))) for path in files}
    if any(known.get(path) != entry for path, entry in found.items()):
        _save(store, known | found)
    return {path.name: found[str(path)]["sha256"] for path in files}


def fresh_digests(folder: Path) -> dict[str, str]:
    """The same as `model_digests`, with every file read now."""
    return {path.name: _known_or_read(path, None)["sha256"] for path in model_files(folder)}


def model_files(folder: Path) -> list[Path]:
    """The absolute paths of the files in `folder` that decide what the model says, by name."""
    return sorted(path for path in folder.absolute().iterdir() if path.suffix in SUFFIXES and path.is_file())


def _known_or_read(path: Path, known: Known | None) -> Known:
    status = path.stat()
    # Whoever may write a file may set its time of modification back, but not that of its last change of any kind.
    stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
    if known is not None and known["stamp"] == stamp:
        return known
    with path.open("rb") as file:
        return Known(stamp=stamp, sha256=hashlib.file_digest(file, "sha256").hexdigest())


def _load(store: Path) -> dict[str, Known]:
    """What was digested before; nothing where the file is missing or broken, since all of it can be made again."""
    try:
        entries = json.loads(store.read_text(encoding="utf-8"))
        return {path: Known(stamp=list(entry["stamp"]), sha256=str(entry["sha256"])) for path, entry in entries.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _save(store: Path, entries: dict[str, Known]) -> None:
    # A cache that cannot be written costs time at the next run, and must not stop this one.
    with suppress(OSError):
        store.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=store.parent, prefix=".digests-", delete=False) as file:
            json.dump(entries, file)
        Path(file.name).replace(store)
