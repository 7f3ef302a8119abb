"""One of several engines of one model, which may be lost alone. Knows no job and opens nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from vera_local.engine.relay import Relay
from vera_local.engine.seam import ChatMessage, Engine, EngineDied, Reply, Request

T = TypeVar("T")

Lost = Callable[["Replica", EngineDied], None]
"""Called with a replica that was lost while others go on, and why."""


class ReplicaLost(EngineDied):
    """Its engine is gone, and others of the same model go on: what was asked of it can be asked of them."""


class Replica(Relay):
    """One of the `siblings` that host the same model.

    Where its engine is lost it is shut until it is opened again: what it was asked, and whatever else waits for it,
    ends with ReplicaLost at once. The last one that is open cannot be lost so: its engine's own error is raised.
    Counts of tokens, which all know alike, are then had from a sibling.
    """

    def __init__(self, engine: Engine, siblings: Sequence[Replica], lost: Lost) -> None:
        super().__init__(engine)
        self._siblings = siblings
        self._lost = lost
        self._waiting: set[asyncio.Timeout] = set()
        self._followers: list[tuple[Callable[[], None], Callable[[], None]]] = []
        self.open = True

    async def generate(self, request: Request) -> Reply:
        return await self._ask(lambda engine: engine.generate(request))

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
        lost, self._engine, self.open = self._engine, engine, True
        for _, opened in self._followers:
            opened()
        return lost

    async def _ask_any(self, ask: Callable[[Engine], Awaitable[T]]) -> T:
        for replica in self._in_turn():
            try:
                return await replica._ask(ask)
            except ReplicaLost:
                continue
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
