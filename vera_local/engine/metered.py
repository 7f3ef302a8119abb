"""What is asked of an engine, counted on the way. Knows no role, no conversation and no particular engine."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from vera_local.engine.relay import Relay
from vera_local.engine.seam import NO_USAGE, Engine, Reply, Request
from vera_local.engine.seen import Seen

Clock = Callable[[], float]

BEGUN = b"\xff"
"""Stands before token ids in a key; no byte of UTF-8."""

TOKEN_BYTES = array("I").itemsize
"""How many bytes of a key are one token of what an answer begins with."""


class Busy:
    """Seconds in which at least one of several things was under way, however many were at once."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._past = 0.0
        self._since = 0.0
        self.under_way = 0

    @property
    def seconds(self) -> float:
        """Up to now."""
        return self._past + (self._clock() - self._since if self.under_way else 0.0)

    def enter(self) -> None:
        """One more is under way."""
        if self.under_way == 0:
            self._since = self._clock()
        self.under_way += 1

    def leave(self) -> None:
        """One ended."""
        self.under_way -= 1
        if self.under_way == 0:
            self._past += self._clock() - self._since


class Tally:
    """Counts of requests to one or several engines.

    `requests`: all that were made; of them `failed` with an error and `aborted`: given up while they were in flight.
    Both have no `usage`, since no engine tells it. `wider`: clocks of something larger that this is a part of.
    `changed` is called whenever a reply was counted.
    """

    def __init__(
        self, clock: Clock = time.monotonic, wider: Sequence[Busy] = (), changed: Callable[[], None] = lambda: None
    ) -> None:
        self._busy = Busy(clock)
        self._clocks = (self._busy, *wider)
        self._seen = Seen()
        self._changed = changed
        self._distinct = 0.0
        self.requests = self.failed = self.aborted = 0
        self.usage = NO_USAGE

    @property
    def in_flight(self) -> int:
        """Requests without a reply so far."""
        return self._busy.under_way

    @property
    def busy(self) -> float:
        """Seconds with at least one request in flight, up to now."""
        return self._busy.seconds

    @property
    def distinct(self) -> int:
        """Prompt tokens that would have to be computed were nothing ever evicted from a KV cache.

        An estimate, since nothing is tokenised for it: each prompt counts with the part of its bytes that no prompt
        before it, with its reply, began with. Prefill amplification is `usage.computed` over this.
        """
        return round(self._distinct)

    def forget(self) -> None:
        """Keep the counts and give back the memory of earlier prompts."""
        self._seen.forget()

    async def count(self, engine: Engine, request: Request, also: Sequence[Busy] = ()) -> Reply:
        """The engine's reply to a request, counted here and under way on the clocks `also`; raises what the engine
        raises."""
        key = _key(request)
        # Now, not when the reply is there: a request that is in flight lends its beginning to the next one already.
        shared = self._seen.add(key)
        self.requests += 1
        for clock in (*self._clocks, *also):
            clock.enter()
        try:
            reply = await engine.generate(request)
        except (asyncio.CancelledError, GeneratorExit):
            self.aborted += 1
            raise
        except BaseException:
            self.failed += 1
            raise
        finally:
            for clock in (*self._clocks, *also):
                clock.leave()
        self.usage += reply.usage
        self._distinct += _new_tokens(request, reply, len(key), shared)
        self._keep(request, reply, key)
        self._changed()
        return reply

    def _keep(self, request: Request, reply: Reply, key: bytes) -> None:
        """Free text is in the KV cache, too: as text for a history that goes on, as tokens for `begun`."""
        if request.labels or request.pattern is not None:
            return
        if not request.begun and reply.text:
            self._seen.add(key + _encoded(reply.text))
        if reply.tokens:
            self._seen.add(key + (b"" if request.begun else BEGUN) + _ids(reply.tokens))


class Metered(Relay):
    """An engine whose requests `tally` counts, and the clocks `also`; all else goes straight through to it."""

    def __init__(self, engine: Engine, tally: Tally, also: Sequence[Busy] = ()) -> None:
        super().__init__(engine)
        self._tally = tally
        self._also = also

    async def generate(self, request: Request) -> Reply:
        return await self._tally.count(self._engine, request, self._also)

    def __getattr__(self, name: str) -> Any:
        """What one kind of engine can do beside the seam."""
        return getattr(self._engine, name)


def _key(request: Request) -> bytes:
    """The prompt in the order in which a template writes it, up to where the reply begins."""
    history = "".join([f"{m.role}\x1f{m.content}\x1e" for m in request.messages])
    text = _encoded(f"{history}assistant\x1f")
    return text + BEGUN + _ids(request.begun) if request.begun else text


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _ids(tokens: Sequence[int]) -> bytes:
    return array("I", tokens).tobytes()


def _new_tokens(request: Request, reply: Reply, length: int, shared: int) -> float:
    """Tokens behind the first `shared` of the key's `length` bytes."""
    begun = len(request.begun)
    text = length - (len(BEGUN) + begun * TOKEN_BYTES if begun else 0)
    if shared < text:
        return (reply.usage.prompt - begun) * (1 - shared / text) + begun
    return max(0.0, (length - shared) / TOKEN_BYTES) if begun else 0.0
