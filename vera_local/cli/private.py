"""What keeps texts of a run from lying where others could read them. Knows no run."""

from __future__ import annotations

import os
import resource
from contextlib import suppress

NO_CORE = 1
"""Bytes. Too few for a file; and Linux hands nothing to a program that collects core dumps at exactly this limit, while
it does so at 0."""


def keep_private() -> None:
    """Let this process, and all that it starts, make files for their owner alone and leave no core dump."""
    os.umask(0o077)
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    limit = NO_CORE if hard == resource.RLIM_INFINITY else min(NO_CORE, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))
