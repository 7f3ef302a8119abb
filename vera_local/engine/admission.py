"""How much may be in flight on the engines, counted in tokens of their KV caches. Knows no conversation, no rubric."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from vera_local.engine.metered import Busy
from vera_local.engine.seam import Limits

K = TypeVar("K", bound=Hashable)
"""What an engine goes by."""

FILL = 0.9
"""The part of the KV cache that jobs may declare: ended requests' blocks linger, and none may push out a prefix."""


@dataclass(slots=True)
class Room:
    """What may be kept in one engine: `budget` tokens of at most `jobs` jobs (None: not bounded so). While it is not
    `open` no job comes in; those that are in leave as ever."""

    budget: int | None
    jobs: int | None
    tokens: int = 0
    running: int = 0
    open: bool = True
    requests: Busy = field(default_factory=Busy)
    """What is in flight on the engine, for whoever sends it there to count."""

    @classmethod
    def of(cls, limits: Limits) -> Room:
        """What an engine of these limits can keep. Where the cache is known it alone decides: requests beyond the
        sequences that are generated at once wait in the engine, first come first served, so that all conversations go
        on at one pace and none is left to end alone."""
        if limits.kv_tokens is None:
            return cls(None, limits.sequences)
        return cls(int(FILL * limits.kv_tokens), None)

    @property
    def free(self) -> int | None:
        """Tokens that nobody declared; None where they are not bounded. Below 0 where jobs outgrew the budget."""
        return None if self.budget is None else self.budget - self.tokens

    def fits(self, tokens: int) -> bool:
        """Whether a job may come in; one that is larger than all there is may, alone."""
        if not self.open or self.running == 0:
            return self.open
        crowded = self.jobs is not None and self.running >= self.jobs
        return not crowded and (self.free is None or tokens <= self.free)


@dataclass(slots=True)
class _Waiting(Generic[K]):
    needs: Mapping[K, int]
    turn: asyncio.Future[Lease[K]]


class Admission(Generic[K]):
    """Lets jobs in while the tokens that they declare for each engine fit it.

    `rooms`: engine -> its replicas, of which a job gets one for all of its time. Jobs come in by the order in which
    they asked: none is overtaken by a later one that needs an engine it waits for, so no job waits for ever while each
    engine has an open replica; those that share no engine with it pass. A job larger than an engine's budget runs
    alone there.
    """

    def __init__(self, rooms: Mapping[K, Sequence[Room]]) -> None:
        self.rooms = rooms
        self._waiting: list[_Waiting[K]] = []

    async def enter(self, needs: Mapping[K, int]) -> Lease[K]:
        """Wait until there is room for `needs` (engine -> tokens) on all these engines at once, and take it.

        Who enters has to leave (`Lease.leave`); cancelled while it waits, it holds nothing.
        """
        turn: asyncio.Future[Lease[K]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(needs, turn))
        self._admit()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                turn.result().leave()
            else:
                self._waiting = [w for w in self._waiting if w.turn is not turn]
                self._admit()
            raise

    @asynccontextmanager
    async def hold(self, needs: Mapping[K, int]) -> AsyncIterator[Lease[K]]:
        """`enter`, and leave however the block ends."""
        lease = await self.enter(needs)
        try:
            yield lease
        finally:
            lease.leave()

    def shut(self, key: K, replica: int) -> None:
        """Let no job in to a replica any more."""
        self.rooms[key][replica].open = False

    def reopen(self, key: K, replica: int) -> None:
        """Let jobs in to it again."""
        self.rooms[key][replica].open = True
        self._admit()

    def _admit(self) -> None:
        blocked: set[K] = set()
        left: list[_Waiting[K]] = []
        for waiting in self._waiting:
            if waiting.turn.done():
                continue
            places = None if blocked & waiting.needs.keys() else self._places(waiting.needs)
            if places is None:
                blocked |= waiting.needs.keys()
                left.append(waiting)
            else:
                waiting.turn.set_result(Lease(waiting.needs, places, self._admit))
        self._waiting = left

    def _places(self, needs: Mapping[K, int]) -> dict[K, tuple[int, Room]] | None:
        """A replica with room of each engine, the emptiest; None where one has none."""
        places = {key: _emptiest(self.rooms[key], tokens) for key, tokens in needs.items()}
        found = {key: place for key, place in places.items() if place is not None}
        return found if len(found) == len(places) else None


def _emptiest(replicas: Sequence[Room], tokens: int) -> tuple[int, Room] | None:
    fitting = [(number, room) for number, room in enumerate(replicas) if room.fits(tokens)]
    return min(fitting, key=lambda place: (place[1].tokens, place[1].running), default=None)


class Lease(Generic[K]):
    """What a job holds on each of its engines, until it leaves."""

    def __init__(self, needs: Mapping[K, int], places: Mapping[K, tuple[int, Room]], changed: Callable[[], None]):
        self._held = dict(needs)
        self._places = dict(places)
        self._changed = changed
        for key, room in self._rooms():
            room.tokens += self._held[key]
            room.running += 1

    @property
    def needs(self) -> dict[K, int]:
        """What the job declared at last, engine -> tokens; after it left, too."""
        return dict(self._held)

    def replica(self, key: K) -> int:
        """Which replica of an engine is this job's."""
        return self._places[key][0]

    def room(self, key: K) -> Room:
        """That replica's room."""
        return self._places[key][1]

    def resize(self, key: K, tokens: int) -> None:
        """Declare what the job keeps by now: it is never put out, but while jobs outgrow the room none comes in."""
        if key in self._places:
            self.room(key).tokens += tokens - self._held[key]
            self._held[key] = tokens
            self._changed()

    def leave(self) -> None:
        """Give back all that is held; again does nothing."""
        for key, room in self._rooms():
            room.tokens -= self._held[key]
            room.running -= 1
        self._places.clear()
        self._changed()

    def _rooms(self) -> Iterator[tuple[K, Room]]:
        return ((key, room) for key, (_, room) in self._places.items())
