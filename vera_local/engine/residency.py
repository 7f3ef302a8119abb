"""Engines that take turns in memory too small for all of them. Knows no model, no conversation and no engine library.

A request to a sleeping engine waits until that one is awake. It is woken where it fits beside those awake; else idle
ones, the longest unused first, are put to sleep for it; else it waits until enough of them are idle. An engine is idle
once no request is in flight and whoever just got a reply had the chance to ask again, so that conversations which
alternate between two engines change sides together: about two switches for each turn, however many they are. Sleep
loses the KV cache, and with it all prefixes.

Nobody starves: from the moment a request waits for memory that an engine holds, that engine begins at most `LAPS`
times as many further requests as it had in flight at most since it woke; later ones wait, too. Of several sleeping
engines the one whose request has waited longest is next, and none that shares a GPU with it gets ahead of it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from vera_local.engine.relay import Relay
from vera_local.engine.seam import Engine, EngineDied, EngineLost, Reply, Request
from vera_local.errors import first_line

LAPS = 4
"""Requests that each conversation may still make on an engine that others wait for: a message that is refused and
written again takes several, and cutting it off would cost two switches."""

SETTLING = 20
"""Rounds of the event loop that an engine has to be idle for."""


class Sleeper(Engine, Protocol):
    """An engine that can give its memory back for a while."""

    async def sleep(self) -> None:
        """Give the memory of weights and KV cache back; no request is in flight."""
        ...

    async def wake(self) -> None:
        """Take it again, and be ready to generate."""
        ...


@dataclass(eq=False, slots=True)
class _Member:
    """An engine and its state. `takes`: bytes by GPU while it `holds` memory. `peak`: the most requests in flight since
    it woke. `left`: requests that it may still begin (None: nobody waits for its memory)."""

    name: str
    engine: Sleeper
    takes: Mapping[int, int]
    awake: bool = True
    holds: bool = True
    closed: bool = False
    in_flight: int = 0
    peak: int = 1
    used: int = 0
    left: int | None = None
    waiting: deque[tuple[int, asyncio.Future[None]]] = field(default_factory=deque)

    @property
    def admits(self) -> bool:
        """Whether a request may begin."""
        return self.awake and self.left != 0


class Gate:
    """Lets requests through to engines that are awake. `room`: bytes that those may take together, by GPU."""

    def __init__(self, room: Mapping[int, int]) -> None:
        self._room = dict(room)
        self._members: list[_Member] = []
        self._numbers = itertools.count(1)
        self._switching = asyncio.Lock()
        self._left = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._broken = ""
        self.switches = 0

    async def open(self, name: str, takes: Mapping[int, int], opener: Callable[[], Awaitable[Sleeper]]) -> Engine:
        """Open an engine that will hold `takes` bytes by GPU, once there is room for it; what it raises is passed on.

        What is given is the engine behind this gate.
        """
        assert all(self._room[gpu] >= count for gpu, count in takes.items()), f"{name} is larger than its GPU"
        async with self._switching:
            while (victims := self._victims(takes)) is None:
                self._left.clear()
                await self._left.wait()
            await self._put_to_sleep(victims)
            member = _Member(name, await opener(), takes, used=next(self._numbers))
            self._members.append(member)
        self._kick()
        return Gated(self, member)

    async def aclose(self) -> None:
        """End what is going on behind the gate; the engines are closed one by one."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def enter(self, member: _Member) -> None:
        """Wait until a request to this engine may begin; raises EngineDied where it never may."""
        if self._broken or member.closed:
            raise EngineLost(self._broken) if self._broken else EngineDied(f"{member.name} was closed")
        if member.admits:
            self._begin(member)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (next(self._numbers), turn)
        member.waiting.append(place)
        self._press()
        self._kick()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave(member)
            elif place in member.waiting:
                member.waiting.remove(place)
                self._release()
            raise

    def leave(self, member: _Member) -> None:
        """A request to this engine has ended."""
        member.in_flight -= 1
        member.used = next(self._numbers)
        if member.in_flight == 0:
            self._left.set()
            self._kick()

    async def remove(self, member: _Member) -> None:
        """Close an engine for good."""
        # It holds memory until it is closed, and is not to be put to sleep for that.
        member.awake, member.closed = False, True
        member.in_flight += 1
        self._refuse([member], EngineDied, f"{member.name} was closed")
        await member.engine.aclose()
        self._members.remove(member)
        self._left.set()
        self._release()
        self._kick()

    def _begin(self, member: _Member) -> None:
        member.in_flight += 1
        member.peak = max(member.peak, member.in_flight)
        if member.left is not None:
            member.left -= 1

    def _press(self) -> None:
        """Whoever holds memory that others wait for may begin so many requests and no more."""
        for waiting in self._asleep():
            over = self._over(waiting.takes, self._holding())
            for member in self._members:
                if member.awake and member.left is None and over & member.takes.keys():
                    member.left = LAPS * member.peak

    def _release(self) -> None:
        """Where nobody waits for memory any more, what was held back goes on."""
        if not self._asleep():
            self._reset()

    def _reset(self) -> None:
        for member in self._members:
            member.left = None
            if member.awake:
                self._admit(member)

    def _admit(self, member: _Member) -> None:
        while member.waiting:
            _, turn = member.waiting.popleft()
            if not turn.done():
                self._begin(member)
                turn.set_result(None)

    def _asleep(self) -> list[_Member]:
        """The sleeping engines that requests wait for, the longest wait first."""
        wanted = [member for member in self._members if member.waiting and not member.awake]
        return sorted(wanted, key=lambda member: member.waiting[0][0])

    def _holding(self) -> list[_Member]:
        return [member for member in self._members if member.holds]

    def _over(self, takes: Mapping[int, int], holding: Iterable[_Member]) -> set[int]:
        """The GPUs on which `takes` does not fit beside these."""
        held = [member.takes for member in holding]
        return {gpu for gpu, own in takes.items() if own + sum(h.get(gpu, 0) for h in held) > self._room[gpu]}

    def _victims(self, takes: Mapping[int, int]) -> list[_Member] | None:
        """Idle engines whose sleep makes room for `takes`; None where too many are at work."""
        holding, victims = self._holding(), []
        for idle in sorted((m for m in holding if m.in_flight == 0), key=lambda m: m.used):
            if idle.takes.keys() & self._over(takes, holding):
                holding.remove(idle)
                victims.append(idle)
        return None if self._over(takes, holding) else victims

    def _next(self) -> tuple[_Member, Sequence[_Member]] | None:
        """Whom to wake now, and who has to sleep for it."""
        reserved: set[int] = set()
        for member in self._asleep():
            if not reserved & member.takes.keys() and (victims := self._victims(member.takes)) is not None:
                return member, victims
            reserved |= member.takes.keys()
        return None

    def _kick(self) -> None:
        if (self._task is None or self._task.done()) and not self._broken and self._next() is not None:
            self._task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        async with self._switching:
            while (found := self._next()) is not None:
                if found[1] and not await self._settled(found):
                    continue
                try:
                    await self._switch(*found)
                except EngineDied:
                    # Told to those who wait.
                    return

    async def _settled(self, found: tuple[_Member, Sequence[_Member]]) -> bool:
        """Whether the same switch is still due after conversations had the chance to go on."""
        for _ in range(SETTLING):
            await asyncio.sleep(0)
            if self._next() != found:
                return False
        return True

    async def _switch(self, member: _Member, victims: Sequence[_Member]) -> None:
        await self._put_to_sleep(victims)
        member.holds, member.peak = True, 1
        try:
            await member.engine.wake()
        except Exception as error:
            raise self._fail(f"{member.name} could not be woken", error) from error
        member.awake = True
        self.switches += 1
        self._reset()
        self._press()

    async def _put_to_sleep(self, victims: Sequence[_Member]) -> None:
        # None of them begins anything while another is falling asleep.
        for victim in victims:
            victim.awake = False
        for victim in victims:
            try:
                await victim.engine.sleep()
            except Exception as error:
                raise self._fail(f"{victim.name} could not be put to sleep", error) from error
            victim.holds = False

    def _fail(self, what: str, error: Exception) -> EngineLost:
        """Nobody knows what memory is free now, so nothing begins any more."""
        self._broken = f"{what} ({first_line(error)})"
        self._refuse(self._members, EngineLost, self._broken)
        return EngineLost(self._broken)

    def _refuse(self, members: Iterable[_Member], kind: type[EngineDied], why: str) -> None:
        for member in members:
            while member.waiting:
                _, turn = member.waiting.popleft()
                if not turn.done():
                    turn.set_exception(kind(why))


class Gated(Relay):
    """An engine whose requests wait until it is awake; all else it tells asleep, too."""

    def __init__(self, gate: Gate, member: _Member) -> None:
        super().__init__(member.engine)
        self._gate = gate
        self._member = member

    async def generate(self, request: Request) -> Reply:
        await self._gate.enter(self._member)
        try:
            return await super().generate(request)
        finally:
            self._gate.leave(self._member)

    async def aclose(self) -> None:
        await self._gate.remove(self._member)
