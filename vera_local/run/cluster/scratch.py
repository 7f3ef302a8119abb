"""Folders of processes that may be killed, and what is left of those that were. Knows not what is in them."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

PREFIX = "vera-local-worker-"

KEPT_SECONDS = 24 * 3600.0
"""How long what a worker left is kept: its failure may name a file there."""


def new_folder(place: Path, prefix: str = PREFIX, kept: float = KEPT_SECONDS) -> Path:
    """A private folder of this process below `place`; those of this prefix that dead processes of this user left so
    long ago (seconds) are removed."""
    for folder in place.glob(f"{prefix}*"):
        if _is_left(folder, prefix, kept):
            shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=place))


def _is_left(folder: Path, prefix: str, kept: float) -> bool:
    pid = folder.name.removeprefix(prefix).partition("-")[0]
    try:
        status = folder.lstat()
    except OSError:
        return False
    old = time.time() - status.st_mtime >= kept
    return old and status.st_uid == os.getuid() and pid.isdigit() and not Path("/proc", pid).exists()
