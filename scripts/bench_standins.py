"""Workers without models that speak to a run's driver as real ones do, at a pace of their own. Know no results: they
say and find the same of every conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from vera_local.bundle import DimensionRating, Walk
from vera_local.conversation import Ending, Message, Speaker
from vera_local.engine.seam import Usage
from vera_local.judge import Confidence, Mode, State, Verdict
from vera_local.run import Plan, Watcher
from vera_local.run.cluster.drafts import Drafts
from vera_local.run.cluster.fleet import Fleet, Remote
from vera_local.run.cluster.inbox import Inbox
from vera_local.run.cluster.spread import Gathering
from vera_local.run.cluster.wire import Failure, Line, Ready, Report, Task
from vera_local.simulate import Said


@dataclass(frozen=True)
class Pace:
    """One engine: it serves `sequences` requests at once, a chatbot's `message` and a `verdict` in so many seconds, and
    has `room` for so many conversations. `words`: of a message."""

    sequences: int
    message: float
    verdict: float
    room: int
    words: int = 8

    @property
    def rate(self) -> float:
        """Conversations of two messages, one of them the chatbot's, and seven verdicts that it does in a second."""
        return self.sequences / (self.message + 7 * self.verdict)


Wire = Callable[[Report], Awaitable[Report]]
"""How a report comes to the driver."""


async def at_once(report: Report) -> Report:
    """A wire that takes no time."""
    return report


class Toll:
    """A wire that takes the time that the driver itself would need: so many seconds for each report, and for each
    message or verdict in it, one report after the other."""

    def __init__(self, report: float, commit: float) -> None:
        self._report, self._commit = report, commit
        self._driver = asyncio.Lock()

    async def __call__(self, report: Report) -> Report:
        async with self._driver:
            await asyncio.sleep(self._report + self._commit * committed(report))
        return report


def committed(report: Report) -> int:
    """The messages and verdicts in it."""
    return sum(written.call in ("add_message", "add_verdict") for written in report.written)


@dataclass(frozen=True)
class Script:
    """What is found of every conversation of a plan: the last answer to each question, and what follows from it."""

    plan: Plan
    path: tuple[tuple[str, str], ...]
    ratings: tuple[DimensionRating, ...]

    @classmethod
    def of(cls, plan: Plan) -> Script:
        """Walk the plan's rubric once."""
        walk, path = Walk.start(plan.bundle.rubric), []
        while (question := walk.question) is not None:
            answer = question.options[-1].answer
            path.append((question.id, answer))
            walk = walk.answer(answer)
        return cls(plan, tuple(path), walk.ratings())


@dataclass
class StandIn:
    """A worker; its reports go through the `wire`."""

    name: str
    script: Script
    lines: Sequence[Line]
    pace: Pace
    wire: Wire

    def __post_init__(self) -> None:
        self._news, self._urgent, self._over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._drafts = Drafts(self._news.set)
        self._inboxes = {line: Inbox(self._hurry) for line in self.lines}
        self._room = asyncio.Semaphore(self.pace.room)
        self._engine = asyncio.Semaphore(self.pace.sequences)
        self._work = asyncio.create_task(self._until_closed())

    async def ready(self) -> Ready | Failure:
        return Ready(remembers=False)

    async def give(self, tasks: Sequence[Task], closed: Collection[Line]) -> None:
        for task in tasks:
            self._drafts.give(task)
            self._inboxes[task.line].put(task.conversation.id)
        for line in closed:
            self._inboxes[line].close()

    async def report(self, pause: float) -> Report:
        await self._news.wait()
        self._news.clear()
        await self._soon(pause)
        return await self.wire(self._told())

    async def stop(self) -> None:
        self._work.cancel()
        await asyncio.wait({self._work})

    def _told(self) -> Report:
        if self._work.done():
            # Raises what nobody foresaw.
            self._work.result()
        written, done = self._drafts.hand_in()
        starved = frozenset(line for line, inbox in self._inboxes.items() if inbox.starved)
        wants = {line: wanted for line, inbox in self._inboxes.items() if (wanted := inbox.ask())}
        return Report(written, done, wants, starved, ended=self._work.done())

    def _hurry(self) -> None:
        self._news.set()
        self._urgent.set()

    async def _soon(self, pause: float) -> None:
        """Wait for that time, or until somebody waits for a job."""
        try:
            async with asyncio.timeout(pause):
                await self._urgent.wait()
        except TimeoutError:
            pass
        self._urgent.clear()

    async def _until_closed(self) -> None:
        async with asyncio.TaskGroup() as group:
            for line, inbox in self._inboxes.items():
                group.create_task(self._take(inbox, self._talk if line.kind == "talk" else self._judge))
        self._hurry()

    async def _take(self, inbox: Inbox, work: Callable[[str], Coroutine[None, None, None]]) -> None:
        async with asyncio.TaskGroup() as group:
            async for id in inbox:
                await self._room.acquire()
                group.create_task(work(id)).add_done_callback(lambda _: self._room.release())

    async def _talk(self, id: str) -> None:
        self._drafts.add_message(id, 1, self._said(id, Speaker.PERSONA))
        await self._ask(self.pace.message)
        self._drafts.add_message(id, 2, self._said(id, Speaker.CHATBOT))
        self._drafts.end(id, Ending.TURNS, "")

    async def _judge(self, id: str) -> None:
        for seat in self.script.plan.judges:
            known = self._drafts.verdicts(id, seat.name)
            for place, (question, answer) in enumerate(self.script.path, 1):
                if question not in known:
                    await self._ask(self.pace.verdict)
                    self._drafts.add_verdict(id, seat.name, place, _found(question, answer))
            self._drafts.set_ratings(id, seat.name, self.script.ratings)

    async def _ask(self, seconds: float) -> None:
        async with self._engine:
            await asyncio.sleep(seconds)

    def _said(self, id: str, speaker: Speaker) -> Said:
        text = " ".join([f"{speaker} in {id}:", *["word"] * self.pace.words])
        return Said(Message(speaker, text), Usage(300, 200, self.pace.words), cut=False)


def _found(question: str, answer: str) -> Verdict:
    return Verdict(
        question=question,
        state=State.ANSWERED,
        answer=answer,
        mode=Mode.DIRECT,
        text=answer,
        usage=Usage(900, 800, 3),
        evidence=(2,),
        confidence=Confidence({answer: 0.8, "Other": 0.15}),
    )


def gathering(size: int, pace: Pace, wire: Wire = at_once) -> Gathering:
    """Gathers so many of them for any plan."""

    @asynccontextmanager
    async def gather(plan: Plan, lines: Sequence[Line], jobs: int, watcher: Watcher) -> AsyncIterator[Fleet]:
        yield StandIns(Script.of(plan), pace, size, wire)

    return gather


@dataclass(frozen=True)
class StandIns:
    """A fleet of them."""

    script: Script
    pace: Pace
    size: int
    wire: Wire

    async def start(self, number: int, lines: Sequence[Line]) -> Remote:
        return StandIn(f"worker {number}", self.script, lines, self.pace, self.wire)
