"""Whatever workers do and whenever they are lost, each job is finished once, and a run is over when all of them are."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.bundle import DimensionRating
from vera_local.conversation import Ending, Message, Speaker
from vera_local.engine.seam import NO_USAGE
from vera_local.judge import PersonaCheck
from vera_local.run import Plan, load_config, make_plan
from vera_local.run.cluster import backlog
from vera_local.run.cluster.dispatch import Dispatch
from vera_local.run.cluster.wire import CHECK, TALK, Done, Line, Report, Task, Written
from vera_local.run.ledger import Ledger
from vera_local.run.store import Store
from vera_local.simulate import Said

MODEL, OTHER = "smollm2-135m-instruct", "other@http://127.0.0.1:9/v1"
JUDGES = [MODEL, {"model": MODEL, "mode": "reason"}, OTHER]
RATED = (DimensionRating("a", "b", ()),)

begun = st.lists(st.sampled_from(["new", "ended", "rated by one", "failed", "unfit"]), min_size=1, max_size=12)
"""How far each conversation was in an earlier start."""

steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["ask", "starve", "do", "do", "do"]), st.integers(0, 3), st.integers(0, 9)),
        st.tuples(st.just("lost"), st.integers(0, 3), st.just(0)),
    ),
    max_size=120,
)


class Workers:
    """Four places for workers; the next one takes the place of one that was lost."""

    def __init__(self, store: Store, dispatch: Dispatch) -> None:
        self._store, self._dispatch = store, dispatch
        self._lines = dispatch.open_lines
        self._count = 0
        self.finished: list[tuple[Line, str]] = []
        self.held: dict[int, list[Task]] = {}
        self._news: dict[int, Any] = {}
        self._places = [self._join() for _ in range(4)]

    def _join(self) -> int:
        number = self._count
        self._count += 1
        self._news[number] = self._dispatch.join(number, remembers=False)
        self.held[number] = []
        return number

    def step(self, what: str, place: int, which: int) -> None:
        worker = self._places[place]
        match what:
            case "ask":
                self._dispatch.enter(worker, Report(wants=dict.fromkeys(self._lines, which % 3)))
            case "starve":
                line = self._lines[which % len(self._lines)]
                self._dispatch.enter(worker, Report(wants={line: 1}, starved=frozenset({line})))
            case "do" if held := self.held[worker]:
                self._do(worker, held[which % len(held)])
            case "lost":
                self._dispatch.lost(worker)
                del self.held[worker], self._news[worker]
                self._places[place] = self._join()
        self._feed()

    def _do(self, worker: int, task: Task) -> None:
        """One seat of a judgement, or else all of a job."""
        id = task.conversation.id
        unrated = [judge for judge in task.known if not self._store.pages.is_rated(id, judge)]
        written = self._written(task, unrated)
        ends = len(unrated) <= 1
        done = (Done(task.line, id, judgeable=task.line == TALK and not id.endswith("-3")),) if ends else ()
        if ends:
            self.held[worker].remove(task)
            self.finished.append((task.line, id))
        self._dispatch.enter(worker, Report(written=tuple(written), done=done))

    def _written(self, task: Task, unrated: Sequence[str]) -> list[Written]:
        id = task.conversation.id
        if task.line == CHECK:
            return [Written("add_check", (id, MODEL, PersonaCheck(1, 1)))]
        if task.line != TALK:
            return [Written("set_ratings", (id, unrated[0], RATED))]
        ending = Ending.SIMULATOR if id.endswith("-3") else Ending.TURNS
        return [*said(id), Written("end", (id, ending, ""))]

    def _feed(self) -> None:
        """As the driver does: whoever has news takes what there is."""
        for worker, news in self._news.items():
            if news.is_set():
                news.clear()
                for task in self._dispatch.take(worker):
                    self._check(task)
                    self.held[worker].append(task)

    def _check(self, task: Task) -> None:
        job = task.line, task.conversation.id
        assert job not in self.finished
        assert job not in [(its.line, its.conversation.id) for held in self.held.values() for its in held]
        unrated = {name for name in task.line.seats if not self._store.pages.is_rated(task.conversation.id, name)}
        assert set(task.known) == unrated
        assert unrated or task.line in (TALK, CHECK)

    def do_the_rest(self) -> None:
        """Whoever has nothing to do says so, and each works on until all is done."""
        for _ in range(200):
            for place, worker in enumerate(self._places):
                for line in range(len(self._lines)):
                    if not any(its.line == self._lines[line] for its in self.held[worker]):
                        self.step("starve", place, line)
                self.step("do", place, 0)
            if self._dispatch.done:
                return
        raise AssertionError("it never ends")


def said(id: str) -> list[Written]:
    texts = ((Speaker.PERSONA, "hi"), (Speaker.CHATBOT, "hello"))
    return [
        Written("add_message", (id, turn, Said(Message(speaker, text), NO_USAGE, cut=False)))
        for turn, (speaker, text) in enumerate(texts, 1)
    ]


def leave(store: Store, id: str, how: str) -> None:
    """A conversation as an earlier start left it."""
    if how == "new":
        return
    for written in said(id) if how != "failed" else ():
        getattr(store, written.call)(*written.arguments)
    endings = {"failed": Ending.CHATBOT, "unfit": Ending.OVERFLOW}
    store.end(id, endings.get(how, Ending.TURNS), "")
    if how == "rated by one":
        store.set_ratings(id, MODEL, RATED)


@contextmanager
def opened(plan: Plan, left: Sequence[str]) -> Iterator[tuple[Store, Dispatch]]:
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        conversations = [*plan.conversations()][: len(left)]
        store.begin(conversations)
        for conversation, how in zip(conversations, left, strict=True):
            leave(store, conversation.id, how)
        with Ledger(store) as ledger:
            yield store, Dispatch(plan, store, ledger, simulate=True, judge=True)


@given(begun, steps)
@settings(deadline=None, max_examples=60)
def test_each_job_is_finished_once(left: Sequence[str], doing: Sequence[tuple[str, int, int]]) -> None:
    config = {"out": Path("nowhere"), "personas": 4, "repeats": 3, "judge": JUDGES, "check_personas": True}
    plan = make_plan(load_config(None, config))
    with patch.object(backlog, "KEPT", 3), patch.object(backlog, "PAGE", 2), opened(plan, left) as (store, dispatch):
        expected = dispatch.jobs
        workers = Workers(store, dispatch)
        for step in doing:
            workers.step(*step)
            assert dispatch.done <= (not any(workers.held.values()))
        if not dispatch.done:
            workers.do_the_rest()
        assert expected == len(left)
        assert len(set(workers.finished)) == len(workers.finished)
        pages, names = store.pages, [seat.name for seat in plan.judges]
        assert not pages.count_unfinished() and not pages.count_unrated(names)
        assert not pages.count_unchecked(names[0], [persona.name for persona in plan.personas])
        assert dispatch.over.is_set() and not any(workers.held.values())
