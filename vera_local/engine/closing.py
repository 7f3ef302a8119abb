"""Closes several things, whatever closing one of them raises. Knows not what they are."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Protocol


class Closable(Protocol):
    """Something that is open."""

    async def aclose(self) -> None:
        """Close it."""
        ...


async def close_all(things: Iterable[Closable]) -> None:
    """Close these, the last one first; raises at the end what one of them raised."""
    async with AsyncExitStack() as closing:
        for thing in things:
            closing.push_async_callback(thing.aclose)
