"""The jobs of one line that wait in a worker, and how many more it asks for. Knows nothing of what they are."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

MOST = 64
"""Jobs that are asked for at once at most."""


class Inbox:
    """Ids of conversations as they come; `hungry` is called when somebody waits for one.

    It asks for as many jobs as were begun since it last asked, and one more, or for twice as many while somebody waits:
    so a fast worker has its next jobs ready when it has room for them, and a slow one keeps none that others could do.
    """

    def __init__(self, hungry: Callable[[], None]) -> None:
        self._hungry = hungry
        self._waiting: deque[str] = deque()
        self._came = asyncio.Event()
        self._closed = False
        self._asked = self._begun = self._given = 0
        self.starved = False
        """Whether somebody began to wait since jobs were last asked for."""

    @property
    def size(self) -> int:
        """All that came so far."""
        return self._given

    @property
    def to_come(self) -> int:
        """Nobody knows."""
        return 0

    def put(self, id: str) -> None:
        """A job that was asked for."""
        self._asked -= 1
        self._given += 1
        self._waiting.append(id)
        self._came.set()

    def close(self) -> None:
        """No more will come."""
        self._closed = True
        self._came.set()

    def ask(self) -> int:
        """How many more jobs are wanted than were asked for already; they count as asked for now."""
        if self._closed:
            return 0
        ahead = min(MOST, (self._begun + 1) * (2 if self.starved else 1))
        wanted = max(0, ahead - len(self._waiting) - self._asked)
        self._asked += wanted
        self._begun, self.starved = 0, False
        return wanted

    async def __aiter__(self) -> AsyncIterator[str]:
        while True:
            while not self._waiting:
                if self._closed:
                    return
                self._starve()
                await self._came.wait()
            id = self._waiting.popleft()
            self._begun += 1
            yield id

    def _starve(self) -> None:
        self._came.clear()
        self.starved = True
        self._hungry()
