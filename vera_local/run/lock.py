"""One process at a time in a run folder. Knows nothing of what the process does there."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vera_local.errors import UserError

NAME = "run.lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder; UserError where another process does.

    A record lock ends with the process that took it, even by kill -9, and children do not inherit it.
    """
    file = folder / NAME
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise UserError(f"{file}: cannot write there ({error.strerror}); name another --out") from None
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UserError(f"{folder} is in use by another process; wait for it or name another --out") from None
    finally:
        os.close(descriptor)
