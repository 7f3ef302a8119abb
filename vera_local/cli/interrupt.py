"""Stopping at once, whatever the main thread is busy with. Knows nothing of what is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Coroutine
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn, TypeVar

import psutil

from vera_local.cli import INTERRUPTED
from vera_local.engine.sockets import remove_sockets_folder

T = TypeVar("T")

GRACE_SECONDS = 3.0
"""Time for an orderly end before everything is killed; the user is promised 5 seconds in all."""

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask for the end."""

_STDERR = os.dup(2)
"""Ours even while an engine starts and descriptor 2 belongs to its log."""


class Interrupted(Exception):
    """The user asked for the end."""


def run_until_interrupted(work: Coroutine[Any, Any, T], farewell: str) -> T:
    """Run a coroutine; Interrupted at Ctrl-C, SIGTERM or where the terminal was closed (SIGHUP, unless it is ignored,
    as under nohup), whatever else failed on the way out.

    An end that takes longer than GRACE_SECONDS is forced: `farewell` is printed, all processes that this one started
    are killed and the process exits. What was committed to disk stays.
    """
    asked = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:
        if not asked.is_set():
            asked.set()
            timer = threading.Timer(GRACE_SECONDS, leave, [farewell])
            timer.daemon = True
            timer.start()
        raise KeyboardInterrupt

    heard = [s for s in STOPPING if signal.getsignal(s) is not signal.SIG_IGN]
    previous = {s: signal.signal(s, stop) for s in heard}
    try:
        return asyncio.run(work)
    except BaseException as error:
        # Ctrl-C reaches vLLM's processes, too, so their death may be noticed before our own signal.
        if asked.is_set():
            raise Interrupted(farewell) from error
        raise
    finally:
        kill_children()
        for number, handler in previous.items():
            signal.signal(number, handler)


def kill_children() -> None:
    """Kill every process below this one but Python's resource trackers.

    A tracker ends by itself once the others are gone, and removes the shared memory that they left: vLLM passes token
    ids through it, and those of a transcript may not outlive the run.
    """
    for child in psutil.Process().children(recursive=True):
        try:
            if not any("resource_tracker" in word for word in child.cmdline()):
                child.kill()
        except psutil.Error:
            continue


def leave(farewell: str) -> NoReturn:
    """Say farewell, kill all children and be gone: Python's own way out would wait for vLLM's threads."""
    # The terminal may be gone.
    with suppress(OSError):
        os.write(_STDERR, f"vera-local: {farewell}\n".encode())
    kill_children()
    remove_sockets_folder()
    os._exit(INTERRUPTED)
