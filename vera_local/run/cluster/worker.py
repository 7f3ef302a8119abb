"""A process that hosts engines of a run and works on the jobs that it is given. Knows no folder of the run, and not how
its driver reaches it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console

from vera_local.chatbot import Chatbot, ChatbotDown
from vera_local.conversation import Head
from vera_local.engine import attempts, guard
from vera_local.engine.attempts import Attempt
from vera_local.engine.placement import Residency
from vera_local.engine.seam import EngineDied
from vera_local.errors import UserError
from vera_local.run.chatbots import opened_chatbot
from vera_local.run.checking import check_stage
from vera_local.run.checks import try_judges
from vera_local.run.cluster.drafts import Drafts
from vera_local.run.cluster.inbox import Inbox
from vera_local.run.cluster.wire import CHECK, TALK, Failure, Line, Ready, Report, Task
from vera_local.run.failure import cause
from vera_local.run.host import Host, Opener, start
from vera_local.run.judging import Bench, judge_stage
from vera_local.run.ledger import Ledger
from vera_local.run.needs import needs_of
from vera_local.run.plan import Plan
from vera_local.run.progress import Meter, Watcher
from vera_local.run.reviving import watched
from vera_local.run.seats import Seat
from vera_local.run.simulating import Talk, simulate_arriving
from vera_local.run.wanted import Left
from vera_local.run.work import Floor

HEARTBEAT_SECONDS = 15.0
"""A worker with nothing to tell says so after that time."""

SOON_SECONDS = 0.05
"""What is written within that time goes into one report."""


class Worker:
    """Opens the engines of a plan's `lines`, and works until every line is closed.

    `network`: where its processes note what they attempt beyond the machine; None: nowhere.
    """

    def __init__(self, plan: Plan, opener: Opener, lines: Sequence[Line], network: Path | None = None) -> None:
        self._plan, self._opener, self._network = plan, opener, network
        self._news = asyncio.Event()
        self._urgent = asyncio.Event()
        self._drafts = Drafts(self._news.set)
        self._inboxes = {line: Inbox(self._hurry) for line in lines}
        self._says = _Says()
        self._opened: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
        self._failure: Failure | None = None
        self._told_attempts = self._looked_at = 0
        self._work = asyncio.create_task(self._until_closed())

    async def ready(self) -> Ready | Failure:
        """Wait until the engines are open; why not, where they could not be opened."""
        waiting: set[asyncio.Future[Any]] = {self._work, self._opened}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if self._opened.done():
            return self._opened.result()
        # Raises what nobody foresaw.
        self._work.result()
        return self._failure or Failure("it ended early")

    @property
    def failed(self) -> bool:
        """Whether it ended for a reason that it reported."""
        return self._failure is not None

    async def give(self, tasks: Sequence[Task], closed: Collection[Line] = ()) -> None:
        """Jobs that it asked for, and the lines for which no more will come."""
        for task in tasks:
            self._drafts.give(task)
            self._inboxes[task.line].put(task.conversation.id)
        for line in closed:
            self._inboxes[line].close()

    async def report(self, pause: float = SOON_SECONDS) -> Report:
        """What is new, as soon as there is something: at once where it waits for jobs, else after a `pause` (seconds)
        in which more may come."""
        await self._something_new(pause)
        ended = self._work.done()
        if ended:
            # Raises what nobody foresaw.
            self._work.result()
        written, done = self._drafts.hand_in()
        starved = frozenset(line for line, inbox in self._inboxes.items() if inbox.starved)
        return Report(
            written=written,
            done=done,
            wants={line: wanted for line, inbox in self._inboxes.items() if (wanted := inbox.ask())},
            starved=starved,
            said=self._says.hand_in(),
            attempts=self._attempts(),
            account=self._drafts.used.hand_in(),
            failure=self._failure,
            ended=ended,
        )

    async def aclose(self) -> None:
        """Stop whatever it does, and close its engines."""
        self._work.cancel()
        await asyncio.wait({self._work})

    def _hurry(self) -> None:
        self._news.set()
        self._urgent.set()

    async def _something_new(self, pause: float) -> None:
        await _first(self._news, self._work, HEARTBEAT_SECONDS)
        self._news.clear()
        await _first(self._urgent, self._work, pause)
        self._urgent.clear()

    def _attempts(self) -> tuple[Attempt, ...]:
        if self._network is None or not self._network.exists():
            return ()
        size = self._network.stat().st_size
        if size == self._looked_at:
            return ()
        self._looked_at = size
        every = attempts.read(self._network)
        new, self._told_attempts = every[self._told_attempts :], len(every)
        return new

    async def _until_closed(self) -> None:
        """Work; what goes wrong is kept to be reported."""
        if self._network is not None:
            guard.configure(log=str(self._network))
        try:
            with Ledger(self._drafts) as ledger:
                await watched(lambda: self._stages(ledger), ledger)
        except ExceptionGroup as failed:
            told = cause(failed)
            if told is failed:
                raise
            self._failure = _failure(told)
        except (UserError, EngineDied, OSError) as error:
            self._failure = _failure(error)

    async def _stages(self, ledger: Ledger) -> None:
        plan = self._plan
        judging = any(line.kind != "talk" for line in self._inboxes)
        needs = needs_of(plan, simulate=TALK in self._inboxes, judge=judging)
        async with Host(self._opener, needs, self._says.say) as host:
            work = _Work(plan, host, ledger, self._drafts, self._inboxes, self._says, self._opened)
            await work.all()


class _Work:
    """The stages of a worker, on the engines of its host."""

    def __init__(
        self,
        plan: Plan,
        host: Host,
        ledger: Ledger,
        drafts: Drafts,
        inboxes: Mapping[Line, Inbox],
        watcher: Watcher,
        opened: asyncio.Future[Ready],
    ) -> None:
        self._plan, self._host, self._ledger, self._drafts = plan, host, ledger, drafts
        self._inboxes, self._watcher, self._opened = inboxes, watcher, opened
        seats = {seat.name: seat for seat in plan.judges}
        self._benches = {line: [seats[name] for name in line.seats] for line in inboxes if line.kind == "judge"}

    async def all(self) -> None:
        """Every line until it is closed: side by side where the engines can be awake together, else one by one."""
        if self._host.arrangement.residency is Residency.TOGETHER:
            await self._side_by_side()
        else:
            await self._one_by_one()
        if CHECK in self._inboxes:
            await self._check_personas()

    async def _check_personas(self) -> None:
        floor = await self._floor(False, (), check=True)
        self._tell_ready(None)
        engines, inbox = self._host.engines(self._plan.judges[0].player), self._inboxes[CHECK]
        await check_stage(self._plan, self._drafts, inbox, engines, floor.admission, self._ledger, self._watcher)

    async def _side_by_side(self) -> None:
        talks, groups = TALK in self._inboxes, [*self._benches.values()]
        floor = await self._floor(talks, groups)
        async with self._chatbot(talks) as chatbot:
            benches = {line: await self._bench(floor, seats) for line, seats in self._benches.items()}
            self._tell_ready(chatbot)
            async with asyncio.TaskGroup() as group:
                if chatbot is not None:
                    group.create_task(self._talk(floor, chatbot))
                for line, bench in benches.items():
                    group.create_task(judge_stage(bench, self._inboxes[line], floor.admission, self._watcher))

    async def _one_by_one(self) -> None:
        if TALK in self._inboxes:
            floor = await self._floor(True, ())
            async with opened_chatbot(self._plan, self._host.engine) as chatbot:
                self._tell_ready(chatbot)
                await self._talk(floor, chatbot)
        for line, seats in self._benches.items():
            floor = await self._floor(False, [seats])
            bench = await self._bench(floor, seats)
            self._tell_ready(None)
            await judge_stage(bench, self._inboxes[line], floor.admission, self._watcher)

    async def _floor(self, talks: bool, groups: Sequence[Sequence[Seat]], *, check: bool = False) -> Floor:
        """The engines that this needs, open."""
        left = Left(self._plan, talks, tuple(map(tuple, groups)), check)
        await start(self._host, self._watcher, *left.players)
        return Floor(self._host, [left])

    def _chatbot(self, talks: bool) -> AbstractAsyncContextManager[Chatbot | None]:
        return opened_chatbot(self._plan, self._host.engine) if talks else nullcontext()

    async def _talk(self, floor: Floor, chatbot: Chatbot) -> None:
        floor.welcome(self._plan, chatbot)
        talk = Talk(self._plan, self._drafts, self._host, chatbot, self._ledger, _nobody_waits)
        await simulate_arriving(talk, self._heads(), floor.admission, self._watcher)

    async def _heads(self) -> AsyncIterator[Head]:
        async for id in self._inboxes[TALK]:
            yield self._drafts.conversation(id).head

    async def _bench(self, floor: Floor, seats: Sequence[Seat]) -> Bench:
        """The judges of an engine, tried before they are trusted."""
        await try_judges(self._host.engines(seats[0].player), seats, self._watcher.say)
        return floor.bench(self._plan, seats, self._drafts, self._ledger)

    def _tell_ready(self, chatbot: Chatbot | None) -> None:
        if not self._opened.done():
            remembers = chatbot is not None and chatbot.remembers
            self._opened.set_result(Ready(remembers))


def _nobody_waits(head: Head) -> None:
    """Who judges it is for the driver to say."""


def _failure(error: BaseException) -> Failure:
    return Failure(str(error), isinstance(error, UserError), isinstance(error, ChatbotDown))


async def _first(event: asyncio.Event, work: asyncio.Task[None], seconds: float) -> None:
    """Wait for an event, for the end of the work, or for that time."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait({waiting, work}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


class _Says(Watcher):
    """Keeps what would be said until it is handed in; the driver shows how far all is."""

    def __init__(self) -> None:
        super().__init__(Console(quiet=True))
        self._told: list[str] = []

    def say(self, line: str) -> None:
        self._told.append(line)

    def hand_in(self) -> tuple[str, ...]:
        """What was said since the last time."""
        lines, self._told = tuple(self._told), []
        return lines

    @contextmanager
    def waiting(self, line: str) -> Iterator[None]:
        yield

    @contextmanager
    def stage(self, meter: Meter) -> Iterator[Callable[[], None]]:
        yield lambda: None
