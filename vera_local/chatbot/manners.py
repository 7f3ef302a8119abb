"""How requests to a chatbot are paced, repeated and given up. Knows no protocol and no message."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from vera_local.chatbot.protocol import ChatbotDown, ChatbotFailed
from vera_local.chatbot.settings import Manners

LONGEST_PAUSE = 60.0
"""Seconds between two tries at most, where the chatbot did not ask for more."""

T = TypeVar("T")
Attempt = Callable[[], Awaitable[T]]


class Fault(Exception):
    """A try that gave nothing, where another may. `wait`: seconds the chatbot asked to be left alone."""

    def __init__(self, cause: str, wait: float | None = None) -> None:
        super().__init__(cause)
        self.wait = wait


class Gate:
    """All requests to one chatbot go through it."""

    def __init__(
        self,
        manners: Manners,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._manners = manners
        self._clock = clock
        self._sleep = sleep
        self._at_once = asyncio.Semaphore(manners.concurrency)
        self._next = clock()
        """Before this moment no request goes out."""

    async def ask(self, attempt: Attempt[T], seed: int) -> T:
        """What `attempt` gives, tried again after each Fault; `seed` decides how the pauses vary.

        Raises ChatbotFailed where all tries were in vain, or at once where `attempt` raises it.
        """
        draw, tries = random.Random(seed), self._manners.retries + 1
        for tried in range(1, tries + 1):
            try:
                return await self.once(attempt)
            except Fault as fault:
                self._must_be_worth_it(fault, tried, tries)
                await self._pause(fault, tried, draw)
        raise AssertionError("the last try returns or raises")

    async def once(self, attempt: Attempt[T]) -> T:
        """What one try gives, within the same limits; raises what it raises, or Fault for taking too long."""
        async with self._at_once:
            await self._turn()
            try:
                async with asyncio.timeout(self._manners.timeout) as limit:
                    return await attempt()
            except TimeoutError:
                if not limit.expired():
                    raise
                raise Fault(f"it gave no whole reply within {self._manners.timeout:g} s") from None

    def _must_be_worth_it(self, fault: Fault, tried: int, tries: int) -> None:
        if fault.wait is not None and fault.wait > self._manners.longest_wait:
            asked = f"it asks to be left alone for {fault.wait:.0f} s"
            raise ChatbotFailed(f"{fault}: {asked}, longer than longest_wait allows") from fault
        if tried == tries:
            raise ChatbotFailed(f"{fault}, in {tries} tries" if tries > 1 else str(fault)) from fault

    async def _pause(self, fault: Fault, tried: int, draw: random.Random) -> None:
        jitter = draw.uniform(0.5, 1.5)
        if fault.wait is not None:
            # It is the service that is busy, so every conversation waits.
            self._next = max(self._next, self._clock() + fault.wait)
        await self._sleep(min(LONGEST_PAUSE, self._manners.backoff * 2 ** min(tried - 1, 30) * jitter))

    async def _turn(self) -> None:
        """Wait for this request's own moment; two requests never have the same one where a pace is set."""
        pace = self._manners.requests_per_minute
        while (now := self._clock()) < self._next:
            await self._sleep(self._next - now)
        if pace is not None:
            self._next = now + 60 / pace


class Breaker:
    """Tells a chatbot that is gone from one that fails now and then: any reply begins the count anew.

    Replies, not whole conversations: those that fail end first, so that early on a row of failures would be nothing.
    """

    def __init__(self, give_up_after: int) -> None:
        self._limit = give_up_after
        self._row = 0

    def replied(self) -> None:
        """A conversation got a reply."""
        self._row = 0

    def failed(self, error: ChatbotFailed) -> None:
        """A conversation failed; raises ChatbotDown where it is one too many."""
        self._row += 1
        if self._row >= self._limit:
            raise ChatbotDown(
                f"the chatbot is down: {self._row} conversations in a row got no reply from it, the last because "
                f"{error}; see to it"
            ) from error
