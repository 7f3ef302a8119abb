"""What engines without a model answer in tests of whole runs. Knows no run."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from vera_local.engine.seam import EngineDied, Request


def options(request: Request) -> list[str]:
    """The option texts of a constrained request."""
    assert request.pattern is not None
    return choices(request.pattern)


def choices(pattern: str) -> list[str]:
    """The option texts of a constraint."""
    return [o.replace("\\", "") for o in pattern.strip("()$").split("|")]


def at_random(request: Request) -> str:
    """What a model would do, from the request's own seed alone: a message, or an option."""
    draw = random.Random(request.sampling.seed)
    return f"message {draw.random()}" if request.pattern is None else draw.choice(options(request))


def dying(left: int) -> Callable[[Request], Awaitable[str]]:
    """The same for so many requests; the next one finds the engine dead."""

    async def answer(request: Request) -> str:
        nonlocal left
        left -= 1
        await asyncio.sleep(0)
        if left < 0:
            raise EngineDied("gone")
        return at_random(request)

    return answer
