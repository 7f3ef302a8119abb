"""A fleet whose workers are tasks of this process, some of which are lost when told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from vera_local.run import Plan, Watcher
from vera_local.run.cluster.fleet import Remote, WorkerLost
from vera_local.run.cluster.shares import share_of
from vera_local.run.cluster.wire import Failure, Line, Ready, Report, Task
from vera_local.run.cluster.worker import Worker
from vera_local.run.host import Opener

Lose = Callable[[int, int], bool]
"""(number of a worker, how much it has written) -> whether it is lost now."""


@dataclass
class LocalRemote:
    """A worker here."""

    name: str
    number: int
    worker: Worker
    lose: Lose
    written: int = 0
    gone: bool = False
    tasks: list[Task] = field(default_factory=list)

    def _must_be_there(self) -> None:
        if self.gone:
            raise WorkerLost(f"{self.name} is gone")

    async def ready(self) -> Ready | Failure:
        self._must_be_there()
        return await self.worker.ready()

    async def report(self, pause: float) -> Report:
        self._must_be_there()
        report = await self.worker.report(pause)
        self.written += len(report.written)
        if self.lose(self.number, self.written):
            # What it had to tell is lost with it.
            self.gone = True
            await self.worker.aclose()
        self._must_be_there()
        return report

    async def give(self, tasks: Sequence[Task], closed: Collection[Line]) -> None:
        self._must_be_there()
        self.tasks += tasks
        await self.worker.give(tasks, closed)

    async def stop(self) -> None:
        await self.worker.aclose()


@dataclass
class LocalFleet:
    """So many workers, each with engines of its own."""

    plan: Plan
    opener: Opener
    size: int
    lose: Lose
    remote: Callable[[str, int, Worker, Lose], LocalRemote] = LocalRemote
    started: list[LocalRemote] = field(default_factory=list)

    async def start(self, number: int, lines: Sequence[Line]) -> Remote:
        await asyncio.sleep(0)
        worker = Worker(share_of(self.plan, self.size, number), self.opener, lines)
        self.started.append(self.remote(f"worker {number}", number, worker, self.lose))
        return self.started[-1]


def never(number: int, written: int) -> bool:
    return False


class Local:
    """Gathers local fleets, and remembers them. `remote`: makes their workers."""

    def __init__(
        self, opener: Opener, size: int, lose: Lose = never, remote: Callable[..., LocalRemote] = LocalRemote
    ) -> None:
        self.fleets: list[LocalFleet] = []
        self._opener, self._size, self._lose, self._remote = opener, size, lose, remote

    @asynccontextmanager
    async def __call__(
        self, plan: Plan, lines: Sequence[Line], jobs: int, watcher: Watcher
    ) -> AsyncIterator[LocalFleet]:
        fleet = LocalFleet(plan, self._opener, min(self._size, jobs), self._lose, self._remote)
        self.fleets.append(fleet)
        yield fleet
