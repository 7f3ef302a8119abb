"""One of several engines of one model, which may be lost alone. Knows no job and opens nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from vera_local.engine.relay import Relay
from vera_local.engine.seam import (
    ChatMessage,
    ContextOverflow,
    Engine,
    EngineDied,
    EngineError,
    InvalidRequest,
    Refused,
    Reply,
    Request,
)
from vera_local.errors import first_line

T = TypeVar("T")

Lost = Callable[["Replica", EngineDied], None]
"""Called with a replica that was lost while others go on, and why."""

FAILURES = 3
"""Requests in a row at which a replica fails, and a sibling does not, until it is taken for lost."""


class ReplicaLost(EngineDied):
    """Its engine is gone, and others of the same model go on: what was asked of it can be asked of them."""


class Failing(EngineDied):
    """It answers nothing that its siblings answer. `request`: the last that was asked."""

    def __init__(self, request: Request, error: EngineError) -> None:
        told = first_line(error)
        super().__init__(f"failed at {FAILURES} requests in a row that others answered, the last one so: {told}")
        self.request = request


class Replica(Relay):
    """One of the `siblings` that host the same model.

    Where its engine is lost it is shut until it is opened again: what it was asked, and whatever else waits for it,
    ends with ReplicaLost at once. The last one that is open cannot be lost so: its engine's own error is raised.
    Counts of tokens, which all know alike, are then had from a sibling, and where it fails to count.

    A request at which it fails is asked of its siblings, one after the other: it is an error only where all that are
    open fail at it. One that `returns`, since it can be opened again, is lost by failing FAILURES times in a row where
    a sibling did not.
    """

    def __init__(self, engine: Engine, siblings: Sequence[Replica], lost: Lost, *, returns: bool = False) -> None:
        super().__init__(engine)
        self._siblings = siblings
        self._lost = lost
        self._returns = returns
        self._failures = 0
        self._waiting: set[asyncio.Timeout] = set()
        self._followers: list[tuple[Callable[[], None], Callable[[], None]]] = []
        self.open = True

    @property
    def alone(self) -> Engine:
        """It without its siblings' help, for whoever wants to know whether this very engine works."""
        return _Alone(self)

    async def generate(self, request: Request) -> Reply:
        engine = self._engine
        try:
            return await self.own_reply(request)
        except (EngineDied, ContextOverflow, Refused):
            raise
        except EngineError as error:
            reply = await self._reply_elsewhere(request, error)
            self._failed(engine, Failing(request, error))
            return reply

    async def own_reply(self, request: Request) -> Reply:
        """What its own engine says or raises."""
        reply = await self._ask(lambda engine: engine.generate(request))
        self._failures = 0
        return reply

    async def count_tokens(self, messages: Sequence[ChatMessage], *, thinking: bool = False) -> int:
        return await self._ask_any(lambda engine: engine.count_tokens(messages, thinking=thinking))

    async def tokens(self, text: str) -> tuple[int, ...]:
        return await self._ask_any(lambda engine: engine.tokens(text))

    def follow(self, shut: Callable[[], None], opened: Callable[[], None]) -> None:
        """Have these called whenever it is shut or open again; `shut` now, where it is."""
        self._followers.append((shut, opened))
        if not self.open:
            shut()

    def reopen(self, engine: Engine) -> Engine:
        """It goes on with another engine of the same model; the one that was lost, to be closed."""
        lost, self._engine, self.open, self._failures = self._engine, engine, True, 0
        for _, opened in self._followers:
            opened()
        return lost

    async def _reply_elsewhere(self, request: Request, failed: EngineError) -> Reply:
        """The first one that a sibling has; what it `failed` by here where they all fail, too."""
        for sibling in self._in_turn():
            if sibling is not self:
                try:
                    return await sibling.own_reply(request)
                except (EngineDied, ContextOverflow, Refused):
                    raise
                except EngineError:
                    continue
        raise failed

    def _failed(self, engine: Engine, failing: Failing) -> None:
        """Its `engine` did not answer what a sibling did."""
        if self._returns and engine is self._engine:
            self._failures += 1
            if self._failures >= FAILURES:
                self._died(engine, failing)

    async def _ask_any(self, ask: Callable[[Engine], Awaitable[T]]) -> T:
        failed: EngineError | None = None
        for replica in self._in_turn():
            try:
                return await replica._ask(ask)
            except ReplicaLost:
                continue
            except (EngineDied, InvalidRequest):
                raise
            except EngineError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return await self._ask(ask)

    def _in_turn(self) -> Iterator[Replica]:
        """Itself and then the others, those that are open when their turn comes."""
        return (replica for replica in (self, *self._siblings) if replica.open)

    async def _ask(self, ask: Callable[[Engine], Awaitable[T]]) -> T:
        if not self.open:
            raise ReplicaLost("this engine was lost")
        engine = self._engine
        try:
            async with asyncio.timeout(None) as patience:
                self._waiting.add(patience)
                try:
                    return await ask(engine)
                finally:
                    self._waiting.discard(patience)
        except TimeoutError as error:
            if not patience.expired():
                raise
            raise ReplicaLost("this engine was lost") from error
        except EngineDied as died:
            raise self._died(engine, died) from died

    def _died(self, engine: Engine, died: EngineDied) -> EngineDied:
        """What to raise where `engine` was lost."""
        if self.open and engine is self._engine:
            if not any(sibling.open for sibling in self._siblings if sibling is not self):
                return died
            self._shut(died)
        return ReplicaLost(str(died))

    def _shut(self, died: EngineDied) -> None:
        self.open = False
        waiting, self._waiting, now = self._waiting, set(), asyncio.get_running_loop().time()
        for patience in waiting:
            patience.reschedule(now)
        for shut, _ in self._followers:
            shut()
        self._lost(self, died)


class _Alone(Relay):
    """A replica that is not helped."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica)
        self._replica = replica

    async def generate(self, request: Request) -> Reply:
        return await self._replica.own_reply(request)
