"""The runs of a sweep while they are worked off: which are open, and what became of each. Opens no engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import NamedTuple, Self

from vera_local.chatbot import ChatbotDown
from vera_local.engine.attempts import Attempt
from vera_local.engine.placement import Arrangement
from vera_local.errors import UserError
from vera_local.run import manifest, network
from vera_local.run.evaluate import begun
from vera_local.run.failure import OwnFault
from vera_local.run.ledger import Ledger
from vera_local.run.memory import Peak
from vera_local.run.plan import Plan
from vera_local.run.progress import NamedWatcher, Watcher
from vera_local.run.publishing import publish
from vera_local.run.store import Store
from vera_local.run.sweep_file import Point
from vera_local.run.sweep_notes import Notes, State
from vera_local.run.wanted import Left, Wanted, left_of, left_on_disk
from vera_local.run.work import Books


class _Held(NamedTuple):
    """An open run, and what closes it."""

    books: Books
    stack: ExitStack


class SweepDesk:
    """A run is open from the first that is done for it in a step to the last; where an engine is lost meanwhile it
    stays open, and goes on when the engines were opened anew. `hosts`: beyond this machine, that all runs may reach."""

    def __init__(
        self, points: Sequence[Point], notes: Notes, watcher: Watcher, hosts: Sequence[str], tried: network.Tried
    ):
        self.plans = [point.plan for point in points]
        self._names = {point.plan.out: point.name for point in points}
        self._notes, self._shown, self._hosts, self._tried = notes, watcher, hosts, tried
        self._peak = Peak.here()
        self._held: dict[str, _Held] = {}
        self._noted = defaultdict[str, list[Attempt]](list)
        self._over: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._held:
            _, held = self._held.popitem()
            held.stack.__exit__(kind, value, trace)

    @property
    def pulse(self) -> tuple[int, int]:
        """As `Ledger.pulse`, of all runs that are open."""
        waiting, ended = zip((0, 0), *(held.books.ledger.pulse for held in self._held.values()), strict=True)
        return sum(waiting), sum(ended)

    def restarted(self) -> None:
        """Note in each open run that an engine was lost."""
        for held in self._held.values():
            held.books.ledger.restarted()

    def left(self, plan: Plan) -> Left:
        """What is still missing in a run; nothing where it failed."""
        name = self._names[plan.out]
        if name in self._over:
            return Left(plan, False, (), False)
        try:
            if name in self._held:
                # To look at a store from outside would give its lock away.
                return left_of(Wanted(plan), self._held[name].books.store)
            return left_on_disk(Wanted(plan))
        except UserError as error:
            self.failed(plan, error)
            return Left(plan, False, (), False)

    def open(self, plan: Plan, arrangement: Arrangement) -> Books:
        """The records of a run, which nobody else may use meanwhile; UserError where they cannot be had."""
        name = self._names[plan.out]
        if name not in self._held:
            self._held[name] = self._opened(plan)
            self._notes.enter(name, State.BEGUN)
        manifest.enter_residency(plan.out, arrangement)
        return self._held[name].books

    def done(self, plan: Plan) -> None:
        """A step's part is done; where it was the last, the run's results are written."""
        name = self._names[plan.out]
        held = self._held[name]
        if not left_of(Wanted(plan, simulate=False), held.books.store):
            self._publish(plan, held.books.store)
        self._close(plan)

    def failed(self, plan: Plan, error: OwnFault) -> None:
        """The run cannot go on; the others do."""
        name, reason = self._names[plan.out], str(error)
        if name in self._held:
            self._close(plan)
        if isinstance(error, ChatbotDown):
            self._shown.say(f"{name}: {error}")
            reason = f"the chatbot is down, what was said until then is kept; see vera-local show {plan.out}"
        self._end(name, State.FAILED, reason)

    def finish(self) -> None:
        """Write the results of runs to which nothing was left to do, but that were stopped before that."""
        for plan in self.plans:
            name = self._names[plan.out]
            if name in self._over or self._notes.state(name) is State.DONE:
                continue
            try:
                self._held[name] = self._opened(plan)
                self._publish(plan, self._held[name].books.store)
                self._close(plan)
            except UserError as error:
                self.failed(plan, error)

    def watcher(self, plan: Plan) -> Watcher:
        """Shows how far the run is, by its name."""
        return NamedWatcher(self._names[plan.out], self._shown)

    def _opened(self, plan: Plan) -> _Held:
        with ExitStack() as stack:
            store = stack.enter_context(begun(plan, judge=True))
            ledger = stack.enter_context(Ledger(store, peak=self._peak))
            return _Held(Books(store, ledger), stack.pop_all())

    def _publish(self, plan: Plan, store: Store) -> None:
        name = self._names[plan.out]
        if publish(plan.out, plan.bundle, store).scores:
            self._end(name, State.DONE)
        else:
            self._end(name, State.FAILED, f"no conversation could be judged; see vera-local show {plan.out}")

    def _end(self, name: str, state: State, reason: str = "") -> None:
        """Note what became of a run; the reason, which stays, quotes nothing that was said."""
        self._over.add(name)
        self._notes.enter(name, state, reason)
        self._shown.say(f"{name}: {state}{f' ({reason})' if reason else ''}")

    def _close(self, plan: Plan) -> None:
        name = self._names[plan.out]
        held = self._held.pop(name)
        # What an engine tries to reach that runs share, it tries for each of them.
        tried = [attempt for attempt in self._tried() if attempt not in self._noted[name]]
        self._noted[name] += tried
        network.enter(plan, self._hosts, tried)
        held.stack.close()
