"""How much may be in flight on an engine, counted in tokens of its KV cache. Knows no conversation and no rubric."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from vera_local.engine.seam import Limits

FILL = 0.9
"""The part of the KV cache that jobs may declare: ended requests' blocks linger, and none may push out a prefix."""


class Admission:
    """Lets jobs in, in the order they came, while the tokens they declare fit `budget` (None: no bound by tokens)
    and they are at most `jobs`. A job larger than the whole budget runs alone.
    """

    def __init__(self, budget: int | None, jobs: int) -> None:
        self._budget = budget
        self._jobs = jobs
        self._tokens = 0
        self._running = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @classmethod
    def to(cls, *limits: Limits, jobs: int | None = None) -> Admission:
        """For jobs that keep their tokens in each of these engines: the smallest one decides, and so does `jobs`.

        Where there is no engine, `jobs` has to be given.
        """
        budgets = [int(FILL * known.kv_tokens) for known in limits if known.kv_tokens is not None]
        bounds = [*(known.sequences for known in limits), *(() if jobs is None else (jobs,))]
        return cls(min(budgets, default=None), min(bounds))

    @asynccontextmanager
    async def hold(self, tokens: int) -> AsyncIterator[None]:
        """Wait for room for `tokens`, keep it inside the block, and give it back however the block ends."""
        await self._enter(tokens)
        try:
            yield
        finally:
            self._leave(tokens)

    def _fits(self, tokens: int) -> bool:
        if self._running == 0:
            return True
        return self._running < self._jobs and (self._budget is None or self._tokens + tokens <= self._budget)

    async def _enter(self, tokens: int) -> None:
        if not self._waiting and self._fits(tokens):
            self._take(tokens)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((tokens, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(tokens)
            elif (tokens, turn) in self._waiting:
                self._waiting.remove((tokens, turn))
                self._admit()
            raise

    def _take(self, tokens: int) -> None:
        self._tokens += tokens
        self._running += 1

    def _leave(self, tokens: int) -> None:
        self._tokens -= tokens
        self._running -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            tokens, turn = self._waiting.popleft()
            if not turn.done():
                self._take(tokens)
                turn.set_result(None)
