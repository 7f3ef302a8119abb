"""Keeps the workers of a run at work until nothing is missing. Knows no store and not where the workers are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from vera_local.chatbot import ChatbotDown
from vera_local.engine.attempts import Attempt
from vera_local.engine.seam import EngineDied
from vera_local.errors import UserError
from vera_local.run.cluster.dispatch import Dispatch
from vera_local.run.cluster.fleet import Fleet, Remote, WorkerLost
from vera_local.run.cluster.wire import Failure, Line, Ready
from vera_local.run.failure import cause

RESTARTS = 2
"""How often, for each worker that there is to be, one that was lost is started anew without any job finished meanwhile.
Workers that are lost more often have a reason that the user must see to."""

SILENT_SECONDS = 3600.0
"""A worker that told nothing for so long is taken for lost. It tells something every few seconds, but not while it
loads a model; that its process or machine is gone is known at once."""

REPORTS_PER_SECOND = 400
"""Of all workers together: what one driver reads with ease."""

LEAST_PAUSE = 0.05
"""Seconds that a worker gathers news before it tells them."""


@dataclass
class Drive:
    """One run's workers. `say` tells the user; `noted` keeps what workers tried to reach beyond their machines."""

    dispatch: Dispatch
    fleet: Fleet
    say: Callable[[str], None]
    noted: Callable[[tuple[Attempt, ...]], object]
    _lost: int = 0
    _finished_then: int = 0
    _said: set[str] = field(default_factory=set)

    async def until_done(self) -> None:
        """Raises UserError, and EngineDied where too many workers were lost; what was done until then is committed."""
        try:
            async with asyncio.TaskGroup() as group:
                for place in range(self.fleet.size):
                    group.create_task(self._keep_one(place))
        except ExceptionGroup as failed:
            raise cause(failed) from failed
        if not self.dispatch.done:
            raise RuntimeError("every worker ended, none told why, and not all is done")

    async def _keep_one(self, place: int) -> None:
        """One worker after the other, each in the place of one that was lost."""
        for number in count(place, self.fleet.size):
            if self.dispatch.done:
                return
            try:
                return await self._work_with(number)
            except WorkerLost as lost:
                if not self.dispatch.done:
                    self._must_go_on(lost)

    def _must_go_on(self, lost: WorkerLost) -> None:
        if self.dispatch.finished > self._finished_then:
            self._lost, self._finished_then = 0, self.dispatch.finished
        self._lost += 1
        if self._lost > RESTARTS * self.fleet.size:
            raise EngineDied(f"{lost}; {self._lost} workers were lost in a row, so that none is started any more")
        self.say(f"{lost}; what it had not finished goes on elsewhere, and another worker is started in its place")

    async def _work_with(self, number: int) -> None:
        # What has ended by now needs no engines.
        lines = self.dispatch.open_lines
        remote = await self.fleet.start(number, lines)
        try:
            ready = await self._opened(remote)
            if isinstance(ready, Failure):
                raise _raised(ready, remote)
            if ready is not None:
                news = self.dispatch.join(number, remembers=ready.remembers)
                await self._serve(number, remote, self._feed(number, remote, lines, news))
        finally:
            await _whole(remote.stop())

    async def _opened(self, remote: Remote) -> Ready | Failure | None:
        """Wait until a worker is ready; None where nothing is left for it by then."""
        opening, over = asyncio.ensure_future(remote.ready()), asyncio.create_task(self.dispatch.over.wait())
        try:
            await asyncio.wait({opening, over}, return_when=asyncio.FIRST_COMPLETED)
            return opening.result() if opening.done() else None
        finally:
            opening.cancel()
            over.cancel()

    async def _serve(self, number: int, remote: Remote, feed: Coroutine[Any, Any, None]) -> None:
        feeding = asyncio.create_task(feed)
        try:
            await self._listen(number, remote, feeding)
        finally:
            feeding.cancel()
            self.dispatch.lost(number)

    async def _listen(self, number: int, remote: Remote, feeding: asyncio.Task[None]) -> None:
        """Take what the worker tells, until it has ended."""
        pause = pause_of(self.fleet.size)
        while True:
            try:
                async with asyncio.timeout(SILENT_SECONDS):
                    report = await remote.report(pause)
            except TimeoutError:
                raise WorkerLost(f"{remote.name} told nothing for {SILENT_SECONDS:.0f} seconds") from None
            self.dispatch.enter(number, report)
            self.noted(report.attempts)
            for line in report.said:
                self._tell(line)
            if feeding.done():
                # Raises what went wrong.
                feeding.result()
            if report.failure is not None:
                raise _raised(report.failure, remote)
            if report.ended:
                return

    async def _feed(self, number: int, remote: Remote, lines: Iterable[Line], news: asyncio.Event) -> None:
        """Give the worker what it asks for, until every line that it has is closed."""
        left = set(lines)
        while left:
            news.clear()
            tasks, closed = self.dispatch.take(number), self.dispatch.closed & left
            if tasks or closed:
                await remote.give(tasks, closed)
                left -= closed
            await news.wait()

    def _tell(self, line: str) -> None:
        """What every worker says is said once."""
        if line not in self._said:
            self._said.add(line)
            self.say(line)


def pause_of(workers: int) -> float:
    """Seconds that each of so many workers gathers news."""
    return max(LEAST_PAUSE, workers / REPORTS_PER_SECOND)


def _raised(failure: Failure, remote: Remote) -> Exception:
    kind = UserError if failure.user else ChatbotDown if failure.chatbot else WorkerLost
    return kind(f"{remote.name}: {failure.text}")


async def _whole(work: Coroutine[Any, Any, None]) -> None:
    """Do it to its end, even where that is cancelled meanwhile: others may fail while a worker is being stopped."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
