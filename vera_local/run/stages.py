"""The stages of runs, each only as far as it is still missing, on engines that all runs share. Knows neither what is
said nor what is found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from vera_local.engine.placement import Arrangement, Residency
from vera_local.errors import UserError
from vera_local.run import manifest
from vera_local.run.checks import try_judges
from vera_local.run.failure import OwnFault, own_fault
from vera_local.run.host import Host, Opener, Say, start, unsaid
from vera_local.run.lanes import in_lanes
from vera_local.run.ledger import Ledger
from vera_local.run.needs import needs_of_all
from vera_local.run.plan import Plan
from vera_local.run.progress import Watcher
from vera_local.run.reviving import Pulse, revived
from vera_local.run.seats import Seat
from vera_local.run.steps import Grouping, Step, chatbot_of, parts_of, speakers_of, steps_of
from vera_local.run.store import Store
from vera_local.run.wanted import Left, Wanted, left_of
from vera_local.run.work import Books, Floor, Work


class Desk(Pulse, Protocol):
    """Has the runs that are to be worked off, and their records. `plan` is always that of one of them."""

    @property
    def plans(self) -> Sequence[Plan]:
        """The runs, in their order."""
        ...

    def left(self, plan: Plan) -> Left:
        """What is still missing in a run; nothing where it failed."""
        ...

    def open(self, plan: Plan, arrangement: Arrangement) -> Books:
        """The records of a run for what comes now; UserError where they cannot be had."""
        ...

    def done(self, plan: Plan) -> None:
        """What was to come is done."""
        ...

    def failed(self, plan: Plan, error: OwnFault) -> None:
        """The run cannot go on, for a reason of its own; raises it where there is nothing else to do."""
        ...

    def watcher(self, plan: Plan) -> Watcher:
        """Shows how far the run is."""
        ...


async def stages(plan: Plan, store: Store, opener: Opener, watcher: Watcher, *, simulate: bool, judge: bool) -> None:
    """Hold the conversations that are not held yet and rate those that are not rated yet.

    Raises UserError and EngineDied; what was finished until then is in the store.
    """
    wanted = Wanted(plan, simulate, judge)
    if left_of(wanted, store):
        with Ledger(store) as ledger:
            await work_off(_OneRun(wanted, Books(store, ledger), watcher), opener, watcher)


async def work_off(desk: Desk, opener: Opener, watcher: Watcher) -> None:
    """Do all that is left in the runs of a desk, each model loaded as seldom as can be.

    Raises EngineDied, and UserError where no run can go on; what was finished until then is in the stores.
    """
    await revived(lambda: _work_off(desk, opener, watcher), desk, watcher)


async def _work_off(desk: Desk, opener: Opener, watcher: Watcher) -> None:
    """The same, once, on engines that are opened for it and closed again."""
    left = [left for plan in desk.plans if (left := desk.left(plan))]
    if not left:
        return
    host, grouping = placed(left, opener, watcher.say)
    if sum(map(len, host.arrangement.places.values())) > 1:
        watcher.say(host.arrangement.reason)
    async with host:
        for step in steps_of(left, host.arrangement.residency, grouping):
            await _take(step, desk, host, watcher)


def placed(left: Sequence[Left], opener: Opener, say: Say = unsaid) -> tuple[Host, Grouping]:
    """Where the engines for all that is left go, and which runs hold their conversations in one step: those of one
    chatbot, with all their simulators, or where these do not fit together, those of one chatbot and simulator.

    Raises UserError where they cannot work here.
    """
    try:
        host = Host(opener, needs_of_all(parts_of(left, chatbot_of)), say)
        if host.arrangement.residency is not Residency.TURNS:
            return host, chatbot_of
    except UserError:
        # What is told of the other way is as true of this one.
        pass
    return Host(opener, needs_of_all(parts_of(left, speakers_of)), say), speakers_of


async def _take(step: Step, desk: Desk, host: Host, watcher: Watcher) -> None:
    """Take a step, as far as there is anything to do in it by now."""
    parts = [part for one in step.parts if (part := step.of(desk.left(one.plan)))]
    now = step._replace(parts=tuple(parts))
    if not parts:
        return
    await start(host, watcher, *now.players)
    await _try_judges(parts, host, watcher)
    await in_lanes(parts, partial(_part, desk, Floor(host, parts)))


async def _try_judges(parts: Iterable[Left], host: Host, watcher: Watcher) -> None:
    """Try each engine for the judges that share it before they are trusted; UserError where they cannot be."""
    tried: list[tuple[Seat, ...]] = []
    for seats in (seats for part in parts for seats in part.groups):
        if seats not in tried:
            tried.append(seats)
            await try_judges(host.engines(seats[0].player), seats, watcher.say)


async def _part(desk: Desk, floor: Floor, part: Left, all_in: asyncio.Event) -> None:
    """One run's part of a step; what it fails of by itself ends no other."""
    plan = part.plan
    try:
        books = desk.open(plan, floor.host.arrangement)
        await Work(plan, books, floor, desk.watcher(plan), all_in).do(part)
        desk.done(plan)
    except (UserError, ExceptionGroup) as failed:
        desk.failed(plan, own_fault(failed))


@dataclass(frozen=True)
class _OneRun:
    """The desk of a run that is alone."""

    wanted: Wanted
    books: Books
    shown: Watcher

    @property
    def pulse(self) -> tuple[int, int]:
        return self.books.ledger.pulse

    def restarted(self) -> None:
        self.books.ledger.restarted()

    @property
    def plans(self) -> Sequence[Plan]:
        return (self.wanted.plan,)

    def left(self, plan: Plan) -> Left:
        return left_of(self.wanted, self.books.store)

    def open(self, plan: Plan, arrangement: Arrangement) -> Books:
        manifest.enter_residency(plan.out, arrangement)
        return self.books

    def done(self, plan: Plan) -> None:
        """Whoever asked for it goes on."""

    def failed(self, plan: Plan, error: OwnFault) -> None:
        raise error

    def watcher(self, plan: Plan) -> Watcher:
        return self.shown
