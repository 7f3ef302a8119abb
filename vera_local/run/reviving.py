"""Begins work anew where an engine was lost under it, so often and no more. Knows no stage and opens no engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from vera_local.engine.seam import EngineLost
from vera_local.run.failure import cause
from vera_local.run.progress import Watcher

RESTARTS = 2
"""Of one command. An engine that is lost more often has a reason that the user must see to."""

HUNG_SECONDS = 3600.0
"""An engine without a single reply for so long, while requests wait, is taken for lost. The longest of all requests, a
judge that thinks up to its whole budget on a slow CPU, takes less."""

LOOKS = 20
"""How often one looks in that time."""


class Pulse(Protocol):
    """Who knows what the work has asked."""

    @property
    def pulse(self) -> tuple[int, int]:
        """Requests to engines in flight, and those that have ended."""
        ...

    def restarted(self) -> None:
        """Note that all engines are opened anew."""
        ...


async def revived(work: Callable[[], Awaitable[None]], ledger: Pulse, watcher: Watcher) -> None:
    """Do the work, which is resumable, and do it again where it ends with EngineLost; raises what it raises at last."""
    for restart in range(1, RESTARTS + 1):
        try:
            return await watched(work, ledger)
        except EngineLost as lost:
            ledger.restarted()
            watcher.say(
                f"{lost}; opening the engines anew and asking again what was under way ({restart} of {RESTARTS})"
            )
    await watched(work, ledger)


async def watched(work: Callable[[], Awaitable[None]], ledger: Pulse) -> None:
    """The work, ended with EngineLost where its engines hang."""
    try:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(_must_reply(lambda: ledger.pulse))
            await work()
            watch.cancel()
    except ExceptionGroup as failed:
        raise cause(failed) from failed


async def _must_reply(pulse: Callable[[], tuple[int, int]]) -> None:
    """EngineLost where requests are in flight and none has ended for HUNG_SECONDS."""
    heard, ended_then = time.monotonic(), -1
    while True:
        await asyncio.sleep(HUNG_SECONDS / LOOKS)
        waiting, ended = pulse()
        if not waiting or ended != ended_then:
            heard, ended_then = time.monotonic(), ended
        elif time.monotonic() - heard >= HUNG_SECONDS:
            raise EngineLost(f"no engine replied for {HUNG_SECONDS / 60:.0f} minutes while {waiting} requests waited")
