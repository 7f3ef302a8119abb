"""Sockets that lead beyond the machine, as the kernel has them. Knows neither what opened them nor what is allowed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psutil

from vera_local.engine.destinations import is_here

PAUSE_SECONDS = 0.1


class Seen(NamedTuple):
    """A socket of a process: connected to, or listening at, an address beyond this machine's own loopback."""

    pid: int
    process: str
    told: str


@contextmanager
def watched() -> Iterator[set[Seen]]:
    """Look again and again at this process and all below it; what is seen is in the set when the block ends.

    A socket that lives shorter than the pause between two looks may be missed.
    """
    seen: set[Seen] = set()
    done = threading.Event()

    def look() -> None:
        while not done.wait(PAUSE_SECONDS):
            seen.update(beyond())

    watcher = threading.Thread(target=look, daemon=True, name="sockets")
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()
        seen.update(beyond())


def beyond() -> set[Seen]:
    """What there is now."""
    here = psutil.Process()
    return {seen for process in (here, *here.children(recursive=True)) for seen in _of(process)}


def _of(process: psutil.Process) -> Iterator[Seen]:
    try:
        sockets, name = process.net_connections("inet"), process.name()
    except psutil.Error:
        return
    for socket in sockets:
        if socket.raddr and not is_here(socket.raddr.ip):
            yield Seen(process.pid, name, f"connected to {_place(socket.raddr)}")
        # The unspecified address takes what comes from anywhere.
        elif socket.status == psutil.CONN_LISTEN and (
            socket.laddr.ip in ("0.0.0.0", "::") or not is_here(socket.laddr.ip)
        ):
            yield Seen(process.pid, name, f"listening at {_place(socket.laddr)}")


def _place(address: psutil._ntuples.addr) -> str:
    return f"{address.ip}:{address.port}"
