"""Runs on their way through the same engines: a few at a time. Knows nothing of what they do there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterable, Sequence

from vera_local.run.chatbots import place_of
from vera_local.run.wanted import Left

LANES = 8
"""Chatbots whose runs come in at the same time: enough to keep engines busy where chatbots elsewhere are slow."""

Do = Callable[[Left, asyncio.Event], Coroutine[object, object, None]]


async def in_lanes(parts: Iterable[Left], do: Do) -> None:
    """Do all parts: of the runs that test one chatbot the next begins when all jobs of the one before it were let in.

    So no engine idles while the last conversations of a run end, and only the jobs of a few runs wait. `do` sets the
    event that it is given when its jobs were let in. Raises what it raises, in an ExceptionGroup; the others are
    cancelled then.
    """
    lanes: dict[Hashable, list[Left]] = {}
    for part in parts:
        lanes.setdefault(place_of(part.plan), []).append(part)
    coming = asyncio.Semaphore(LANES)
    async with asyncio.TaskGroup() as group:
        for lane in lanes.values():
            group.create_task(_lane(lane, do, coming, group))


async def _lane(parts: Sequence[Left], do: Do, coming: asyncio.Semaphore, group: asyncio.TaskGroup) -> None:
    for part in parts:
        async with coming:
            all_in = asyncio.Event()
            group.create_task(_done(part, do, all_in))
            await all_in.wait()


async def _done(part: Left, do: Do, all_in: asyncio.Event) -> None:
    """Do a part; one that ends early has no more jobs to come."""
    try:
        await do(part, all_in)
    finally:
        all_in.set()
