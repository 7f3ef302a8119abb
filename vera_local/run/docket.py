"""The conversations that wait for a judge, while more may still come. Knows of each its length alone."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterable
from itertools import count

from vera_local.conversation import Head


class Docket:
    """Gives out what waits, the longest first, and ends when it was closed and nothing is left.

    `to_come`: how many more may be entered before it is closed. `given_out` is set in the end.
    """

    def __init__(self, waiting: Iterable[Head] = (), to_come: int = 0) -> None:
        self._queue: asyncio.PriorityQueue[tuple[float, int, str | None]] = asyncio.PriorityQueue()
        self._order = count()
        self.given_out = asyncio.Event()
        self.to_come = to_come
        for head in waiting:
            self._enter(head)
        self._seen = self._queue.qsize()
        if not to_come:
            self.close()

    @property
    def size(self) -> int:
        """All that was entered and may yet be."""
        return self._seen + self.to_come

    def enter(self, head: Head) -> None:
        """A conversation that came to its end; one that is not fit to judge is only counted."""
        self.to_come -= 1
        if head.judgeable:
            self._seen += 1
            self._enter(head)

    def close(self) -> None:
        """No more will come."""
        self.to_come = 0
        self._queue.put_nowait((math.inf, next(self._order), None))

    def _enter(self, head: Head) -> None:
        self._queue.put_nowait((-head.characters, next(self._order), head.id))

    async def __aiter__(self) -> AsyncIterator[str]:
        while (id := (await self._queue.get())[2]) is not None:
            yield id
        self.given_out.set()
