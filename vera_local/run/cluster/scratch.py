"""Folders of workers beside their engines, and what is left of those that were killed. Knows not what is in them."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

PREFIX = "vera-local-worker-"

KEPT_SECONDS = 24 * 3600.0
"""How long what a worker left is kept: its failure may name a file there."""


def new_folder(place: Path) -> Path:
    """A private folder of this process below `place`; those that dead processes of this user left long ago are
    removed."""
    for folder in place.glob(f"{PREFIX}*"):
        if _is_left(folder):
            shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=place))


def _is_left(folder: Path) -> bool:
    pid = folder.name.removeprefix(PREFIX).partition("-")[0]
    try:
        status = folder.lstat()
    except OSError:
        return False
    old = time.time() - status.st_mtime > KEPT_SECONDS
    return old and status.st_uid == os.getuid() and pid.isdigit() and not Path("/proc", pid).exists()
