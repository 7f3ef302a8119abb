"""The engines that host one model, opened one after the other; those of servers come back. Knows no job and no role."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import chain, repeat
from typing import NamedTuple

from vera_local.engine.closing import close_all
from vera_local.engine.replica import Failing, Replica
from vera_local.engine.seam import Engine, EngineDied, EngineError
from vera_local.engine.server import Unreached
from vera_local.errors import UserError

PAUSES = (30.0, 60.0, 120.0, 300.0)
"""Seconds until a server that was lost is tried again; the last one from then on."""


class Site(NamedTuple):
    """Where a model is hosted: how its engine is opened there, and the URL where that is a server."""

    open: Callable[[], Awaitable[Engine]]
    url: str | None


class Replicas:
    """One engine on each of the sites; several are Replicas of each other. `say` is told who is lost and comes back."""

    def __init__(self, sites: Sequence[Site], say: Callable[[str], None]) -> None:
        self._sites = sites
        self._say = say
        self._opened: dict[int, Engine] = {}
        self._siblings: list[Replica] = []
        self._returning: set[asyncio.Task[None]] = set()

    @property
    def engines(self) -> tuple[Engine, ...]:
        """Those that were opened, also where they were lost since, in the order of the sites."""
        return tuple(self._opened[place] for place in sorted(self._opened))

    @property
    def whole(self) -> bool:
        """Whether an engine was opened on every site."""
        return len(self._opened) == len(self._sites)

    async def open(self, *, every: bool = False) -> None:
        """Open what is not open yet. Raises UserError; where it is only that some of the servers cannot be reached it
        goes on with the others, unless `every` one has to be there."""
        missing: list[Unreached] = []
        for place in sorted(set(range(len(self._sites))) - self._opened.keys()):
            try:
                self._opened[place] = await self._at(place)
            except Unreached as unreached:
                missing.append(unreached)
        for gone in missing:
            if every or not self._opened:
                raise gone
            self._say(f"{gone}; going on without it")

    async def aclose(self) -> None:
        """Close all engines."""
        for task in self._returning:
            task.cancel()
        await asyncio.gather(*self._returning, return_exceptions=True)
        self._siblings.clear()
        opened = self.engines
        self._opened.clear()
        await close_all(opened)

    async def _at(self, place: int) -> Engine:
        if len(self._sites) == 1:
            return await self._sites[place].open()
        returns = self._sites[place].url is not None
        replica = Replica(await self._alike(place), self._siblings, partial(self._lost, place), returns=returns)
        self._siblings.append(replica)
        return replica

    async def _alike(self, place: int) -> Engine:
        """A new engine there; UserError where it is another one than its siblings."""
        engine = await self._sites[place].open()
        for sibling in self._siblings[:1]:
            own, other = engine.limits.context, sibling.limits.context
            if own != other:
                await engine.aclose()
                raise UserError(
                    f"the server at {self._sites[place].url} serves the model with a context of {own} tokens, others "
                    f"in its list with {other}; serve it alike on all, or leave some out"
                )
        return engine

    def _lost(self, place: int, replica: Replica, died: EngineDied) -> None:
        left, url = sum(sibling.open for sibling in self._siblings), self._sites[place].url
        told = f"the server at {url} {died}" if isinstance(died, Failing) else str(died)
        self._say(f"{told}; what was under way there goes on elsewhere ({left} of {len(self._sites)} left)")
        if url is not None:
            task = asyncio.create_task(self._bring_back(place, replica, died))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    async def _bring_back(self, place: int, replica: Replica, died: EngineDied) -> None:
        """Try the server again until it answers, and give it jobs again."""
        for pause in chain(PAUSES, repeat(PAUSES[-1])):
            await asyncio.sleep(pause)
            try:
                lost = replica.reopen(await self._tried(place, died))
            except (Unreached, EngineError):
                continue
            except UserError as error:
                self._say(f"{error}; going on without it")
                return
            self._say(f"the server at {self._sites[place].url} answers again and is given conversations again")
            await lost.aclose()
            return

    async def _tried(self, place: int, died: EngineDied) -> Engine:
        """A new engine there, which answers what the one before it failed at."""
        engine = await self._alike(place)
        if isinstance(died, Failing):
            try:
                await engine.generate(died.request)
            except BaseException:
                await engine.aclose()
                raise
        return engine
