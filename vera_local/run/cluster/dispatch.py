"""The driver's side of a run that is spread over workers: hands out jobs and keeps what comes back. Knows no transport.

Every report of a worker is committed whole or not at all, and only while the worker is taken to be alive. The jobs of
one that was lost go on from what is committed: so nothing is kept twice, and nothing that is finished is done again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from vera_local.conversation import Conversation, Speaker
from vera_local.run.cluster.backlog import Backlog
from vera_local.run.cluster.wire import CHECK, TALK, Account, Done, Line, Report, Task, Written
from vera_local.run.ledger import Ledger
from vera_local.run.plan import Plan
from vera_local.run.progress import Meter, Watcher
from vera_local.run.store import Store
from vera_local.run.wanted import by_engine

BEFORE = {"talk": (), "judge": ("talk",), "check": ("talk", "judge")}
"""Kind of work -> the kinds whose end it needs to know that no more jobs of it will come."""


class Dispatch:
    """All that is still missing of a plan's run. `simulate` and `judge`: which of it is to be done."""

    def __init__(self, plan: Plan, store: Store, ledger: Ledger, *, simulate: bool, judge: bool) -> None:
        self._plan, self._store, self._ledger = plan, store, ledger
        groups = by_engine(plan.judges) if judge else []
        self._seats = {Line("judge", tuple(seat.name for seat in seats)): seats for seats in groups}
        self._prepare(simulate)
        lines = [
            *([TALK] if simulate else []),
            *self._seats,
            *([CHECK] if judge and plan.config.check_personas else []),
        ]
        self._backlogs = {line: self._backlog(line) for line in lines}
        self._meters = {
            line: Meter(self._title(line), n, n, settled=self._settled) for line, n in self._sizes().items()
        }
        self._shown: list[Callable[[], None]] = []
        self._standing: dict[int, dict[Line, int]] = {}
        self._hungry: dict[Line, set[int]] = {line: set() for line in lines}
        self._idle: dict[Line, set[int]] = {line: set() for line in lines}
        self._news: dict[int, asyncio.Event] = {}
        self._sessions: dict[int, int] = {}
        self._remembers = False
        self.closed: set[Line] = set()
        self.over = asyncio.Event()
        """Set when nothing is missing any more."""
        self._close()

    @property
    def open_lines(self) -> tuple[Line, ...]:
        """The kinds of work that something is still missing of."""
        return tuple(line for line in self._backlogs if line not in self.closed)

    @property
    def done(self) -> bool:
        """Whether nothing is missing any more."""
        return not self.open_lines

    @property
    def finished(self) -> int:
        """Jobs that were finished so far."""
        return sum(meter.jobs_done for meter in self._meters.values())

    @property
    def jobs(self) -> int:
        """Conversations that something is to be done with, at most."""
        return max((meter.jobs for meter in self._meters.values()), default=0)

    @contextmanager
    def shown(self, watcher: Watcher) -> Iterator[None]:
        """Show how far each line is."""
        with ExitStack() as stack:
            self._shown = [stack.enter_context(watcher.stage(meter)) for meter in self._meters.values()]
            yield

    def join(self, worker: int, *, remembers: bool) -> asyncio.Event:
        """A worker that is ready; what is given is set whenever there may be something for it."""
        self._remembers |= remembers
        self._standing[worker] = dict.fromkeys(self._backlogs, 0)
        self._news[worker] = asyncio.Event()
        return self._news[worker]

    def enter(self, worker: int, report: Report) -> None:
        """Commit what a worker did; UserError where the store cannot keep it."""
        with self._store.together():
            for written in report.written:
                self._keep(written)
            if report.account is not None:
                self._enter_account(worker, report.account)
        for line, wanted in report.wants.items():
            self._standing[worker][line] += wanted
        for line in report.starved:
            self._idle[line].add(worker)
        for done in report.done:
            self._finish(worker, done)
        if report.done:
            self._close()
        self._news[worker].set()
        self._ledger.touch()
        self._show()

    def take(self, worker: int) -> list[Task]:
        """The jobs that a worker asked for, as far as there are any."""
        tasks = []
        for line, standing in self._standing[worker].items():
            while standing and (id := self._next(line, worker)) is not None:
                standing -= 1
                self._idle[line].discard(worker)
                tasks.append(self._task(line, id))
            self._standing[worker][line] = standing
            (self._hungry[line].add if standing else self._hungry[line].discard)(worker)
        return tasks

    def lost(self, worker: int) -> None:
        """Take back the jobs of a worker that is gone."""
        del self._standing[worker], self._news[worker]
        for line, backlog in self._backlogs.items():
            self._hungry[line].discard(worker)
            self._idle[line].discard(worker)
            # The last jobs are only for those that would begin them at once.
            self._wake([*self._idle[line], *(self._hungry[line] - self._idle[line])], backlog.lost(worker))

    def _prepare(self, simulate: bool) -> None:
        """What failures left is taken back, as at the beginning of every run."""
        if simulate:
            self._store.reopen_failed()
        for seats in self._seats.values():
            for seat in seats:
                self._store.forget_failed(seat.name)

    def _backlog(self, line: Line) -> Backlog:
        pages = self._store.pages
        match line.kind:
            case "talk":
                return Backlog(pages.unfinished)
            case "judge":
                return Backlog(lambda after, limit: pages.unrated(line.seats, after, limit))
        checked = self._checked
        return Backlog(lambda after, limit: pages.unchecked(*checked, after, limit))

    @property
    def _checked(self) -> tuple[str, list[str]]:
        """Who rates personas, and which."""
        return self._plan.judges[0].name, [persona.name for persona in self._plan.personas]

    def _next(self, line: Line, worker: int) -> str | None:
        # Personas are rated when all else is done, as in a run of one process.
        waits = line == CHECK and not self._all_came(line)
        idle = worker in self._idle[line]
        return None if waits or (self._scarce(line) and not idle) else self._backlogs[line].take(worker, idle=idle)

    def _scarce(self, line: Line) -> bool:
        """Whether so few jobs are left that they are for workers that would begin them at once: in the hand of a slow
        one they would hold up the run's end."""
        meter = self._meters[line]
        left = meter.jobs - meter.jobs_done - len(self._backlogs[line].in_hand)
        return left <= len(self._standing)

    def _task(self, line: Line, id: str) -> Task:
        conversation = self._store.conversation(id)
        if line == TALK:
            return Task(line, self._from_where(conversation))
        if line == CHECK:
            return Task(line, conversation)
        unrated = [name for name in line.seats if not self._store.pages.is_rated(id, name)]
        return Task(line, conversation, {name: self._store.verdicts(id, name) for name in unrated})

    def _from_where(self, conversation: Conversation) -> Conversation:
        """Anew where its history was in a session of the chatbot that is over."""
        if not self._remembers or all(message.speaker is Speaker.PERSONA for message in conversation.messages):
            return conversation
        self._store.begin_anew([conversation.id])
        return replace(conversation, messages=())

    def _keep(self, written: Written) -> None:
        call, arguments = written
        keeper = self._store.simulated if call in ("add_rejected", "add_check") else self._store
        getattr(keeper, call)(*arguments)
        self._count(written)

    def _count(self, written: Written) -> None:
        """Show what it cost."""
        match written:
            case ("add_message" | "add_rejected", (_, _, said)):
                self._meters[TALK].usage += said.usage
            case ("add_verdict", (_, judge, _, verdict)):
                line = next(line for line in self._seats if judge in line.seats)
                self._meters[line].usage += verdict.usage
            case ("add_check", (_, _, check)):
                self._meters[CHECK].usage += check.usage

    def _enter_account(self, worker: int, account: Account) -> None:
        session, stages, rows = account
        if worker not in self._sessions:
            self._sessions[worker] = self._store.used.begin(session.started)
        number = self._sessions[worker]
        self._store.used.save(
            replace(session, session=number, part_of=self._ledger.session),
            [replace(stage, session=number) for stage in stages],
            [replace(row, session=number) for row in rows],
        )

    def _finish(self, worker: int, done: Done) -> None:
        self._backlogs[done.line].finish(done.conversation)
        self._meters[done.line].jobs_done += 1
        self._meters[done.line].steps_done += 1
        if not done.judgeable:
            return
        for line in self._seats:
            self._backlogs[line].enter(done.conversation, worker)
            # Its own worker has the conversation in its caches.
            if worker not in self._idle[line]:
                self._wake([*self._idle[line]], 1)

    def _wake(self, waiting: Sequence[int], jobs: int) -> None:
        """Let as many of those that wait look again."""
        for worker in waiting[:jobs]:
            self._news[worker].set()

    def _close(self) -> None:
        """Find the lines for which no job will come any more."""
        before = len(self.closed)
        for line, backlog in self._backlogs.items():
            if line not in self.closed and self._all_came(line) and backlog.done:
                self.closed.add(line)
        if self.done:
            self.over.set()
        if len(self.closed) > before:
            for news in self._news.values():
                news.set()

    def _all_came(self, line: Line) -> bool:
        """Whether what its jobs come from has ended."""
        return all(other in self.closed for other in self._backlogs if other.kind in BEFORE[line.kind])

    def _sizes(self) -> dict[Line, int]:
        """How many jobs there are of each line; conversations that may yet come to be judged among them."""
        pages = self._store.pages
        talks = pages.count_unfinished() if TALK in self._backlogs else 0
        sizes = {TALK: talks} | {line: talks + pages.count_unrated(line.seats) for line in self._seats}
        if CHECK in self._backlogs:
            sizes[CHECK] = talks + pages.count_unchecked(*self._checked)
        return {line: sizes[line] for line in self._backlogs}

    def _title(self, line: Line) -> str:
        if line.kind != "judge":
            return "Simulating" if line == TALK else "Checking personas"
        names = dict.fromkeys(seat.judge for seat in self._seats[line])
        return "Judging" if len(self._seats) == 1 else f"Judging by {', '.join(names)}"

    def _settled(self) -> bool:
        return TALK not in self._backlogs or TALK in self.closed

    def _show(self) -> None:
        for line, meter in self._meters.items():
            meter.in_flight = len(self._backlogs[line].in_hand)
        for changed in self._shown:
            changed()
