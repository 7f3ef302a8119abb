"""The folder of a run: made for its owner alone, held by one process at a time. Knows nothing of what is in it."""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vera_local.errors import UserError

LOCK = "run.lock"
MANIFEST = "manifest.json"
STORE = "run.sqlite"
ENGINE_LOG = "engine.log"

# Linux's struct flock: type, whence, start, length, process.
_FLOCK = "hhqqi"


def prepare_folder(
    folder: Path, mark: str = MANIFEST, what: str = "run", is_own: Callable[[str], bool] = lambda name: False
) -> None:
    """Make a folder for a new run, or see that the one that is there is empty or holds a run, by the file `mark`, or
    nothing but what is its own by name.

    UserError where it cannot be made or written to, or holds something else.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = [f.name for f in folder.iterdir() if f.name != LOCK]
        strange = [] if mark in found else [name for name in found if not is_own(name)]
        if strange:
            raise UserError(
                f"{folder} holds other files ({sorted(strange)[0]}) and no {what}; name a new or empty folder"
            )
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(13, "not writable")
        if not found:
            folder.chmod(0o700)
    except OSError as error:
        raise UserError(f"{folder}: cannot write there ({error.strerror}); name another --out") from None


def must_be_its_own(folder: Path) -> None:
    """UserError where a file that is written in place is a link, which can lead anywhere, or where anything is a pipe
    or device, which need not end: the folder may come from somebody else."""
    for path in folder.iterdir():
        in_place = path.name in (LOCK, ENGINE_LOG) or path.name.startswith(STORE)
        if path.is_symlink() and in_place:
            raise UserError(f"{path} is a link, which can lead out of the run: put the file itself in its place")
        with suppress(OSError):
            kind = path.stat().st_mode
            if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                raise UserError(f"{path} is a pipe or a device, and no file of a run: remove it")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder; UserError where another process does, and where what is in it leads elsewhere.

    A record lock ends with the process that took it, even by kill -9, and children do not inherit it.
    """
    file = folder / LOCK
    try:
        must_be_its_own(folder)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise UserError(
            f"{file}: cannot write there ({error.strerror}); copy the folder to where one can, or name another --out"
        ) from None
    try:
        _take(descriptor, folder)
        _make_private(folder)
        yield
    finally:
        os.close(descriptor)


def at_work(folder: Path) -> bool:
    """Whether another process holds the folder; asking takes no lock that could be in its way, but gives back one that
    this process has."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, *_ = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
        return bool(kind != fcntl.F_UNLCK)
    finally:
        os.close(descriptor)


def _take(descriptor: int, folder: Path) -> None:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(f"{folder} is in use by another process; wait for it or name another --out") from None


def _make_private(folder: Path) -> None:
    """A copy of a run has the permissions that copying gave it; those of another owner are not ours to change."""
    for path in (folder.resolve(), *folder.iterdir()):
        with suppress(OSError):
            mode = path.lstat().st_mode
            if mode & 0o077 and not path.is_symlink():
                path.chmod(mode & 0o7700)
