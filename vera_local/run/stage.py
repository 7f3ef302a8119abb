"""How the jobs of a stage are let in and counted. Knows neither talking nor judging."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from vera_local.engine.admission import Admission, Lease, Room
from vera_local.engine.replica import Replica, ReplicaLost
from vera_local.engine.seam import Engine, Usage
from vera_local.run.progress import Meter
from vera_local.together import told_to_end

Held = Lease[Hashable]

MOVES = 10
"""How often a job goes on elsewhere: one under which more replicas are lost is likely what they are lost by."""


class Job(NamedTuple):
    """One conversation's work: the tokens that it will keep in each engine, and what is done once it is let in. Done
    again, it goes on from what is in the store."""

    needs: Mapping[Hashable, int]
    work: Callable[[Held], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage at work; `changed` tells whoever shows the meter."""

    admission: Admission[Hashable]
    meter: Meter
    changed: Callable[[], None]

    async def all(self, jobs: AsyncIterator[Job]) -> None:
        """Do all jobs, in the order given: the next one is looked up when the one before it was let in.

        Raises what they raise, in an ExceptionGroup; the others are cancelled then.
        """
        async with asyncio.TaskGroup() as group:
            async for job in jobs:
                lease = await self.admission.enter(job.needs)
                task = group.create_task(self._do(job, lease))
                # A task that is cancelled before it begins runs no line of its own.
                task.add_done_callback(partial(_leave, lease))

    async def _do(self, job: Job, lease: Held) -> None:
        """Do a job. Where a replica that it works on is lost it moves to another one, and goes on there."""
        try:
            for moves in range(MOVES + 1):
                try:
                    await self._work(job, lease)
                    break
                except ReplicaLost:
                    if moves == MOVES:
                        raise
                self.meter.moved += 1
                lease.leave()
                lease = await self.admission.enter(lease.needs)
        finally:
            lease.leave()
        self.meter.jobs_done += 1
        self.changed()

    async def _work(self, job: Job, lease: Held) -> None:
        self.meter.in_flight += 1
        try:
            await job.work(lease)
        except asyncio.CancelledError as error:
            if told_to_end():
                raise
            raise RuntimeError("a job ended as if it had been cancelled, and nobody cancelled it") from error
        finally:
            self.meter.in_flight -= 1

    def step(self, usage: Usage) -> None:
        """A message or verdict that was committed, and what it cost."""
        self.meter.steps_done += 1
        self.meter.usage += usage
        self.changed()


def _leave(lease: Held, task: asyncio.Task[None]) -> None:
    lease.leave()


def admission_to(
    engines: Mapping[Hashable, Sequence[Engine]], rooms: Mapping[Hashable, Sequence[Room]]
) -> Admission[Hashable]:
    """Lets jobs in to rooms, of which those of the engines are open while their engines are."""
    admission = Admission(rooms)
    for key, replicas in engines.items():
        for number, engine in enumerate(replicas):
            if isinstance(engine, Replica):
                engine.follow(partial(admission.shut, key, number), partial(admission.reopen, key, number))
    return admission


def rooms_of(engines: Mapping[Hashable, Iterable[Engine]]) -> dict[Hashable, list[Room]]:
    """The room of each engine's replicas."""
    return {key: [Room.of(engine.limits) for engine in replicas] for key, replicas in engines.items()}
