"""A folder for the sockets between vLLM's processes, gone with the run. Knows nothing of what passes through them."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from vera_local.errors import UserError

PREFIX = "vera_local-"


def make_sockets_folder() -> Path:
    """Make the folder of this process, for its owner alone; those of processes that were killed are cleared away.

    UserError where something of another user's lies in its place: who owns a folder can open its sockets.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}[0-9]*"):
        if not _alive(folder.name.removeprefix(PREFIX)):
            shutil.rmtree(folder, ignore_errors=True)
    own = _own()
    with contextlib.suppress(FileExistsError):
        own.mkdir(mode=0o700)
    its = own.lstat()
    if its.st_uid != os.getuid() or not stat.S_ISDIR(its.st_mode):
        raise UserError(f"{own} is another user's; set TMPDIR to a folder of your own and run the same command again")
    own.chmod(0o700)
    atexit.register(remove_sockets_folder)
    return own


def remove_sockets_folder() -> None:
    """Clear this process's folder away, if it has one."""
    shutil.rmtree(_own(), ignore_errors=True)


def _own() -> Path:
    return Path(tempfile.gettempdir()) / f"{PREFIX}{os.getpid()}"


def _alive(process: str) -> bool:
    """Whether a process of that number is there; one that is not ours to ask is."""
    with contextlib.suppress(PermissionError, ValueError):
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            return False
    return True
