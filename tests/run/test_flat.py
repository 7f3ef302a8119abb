"""What a run takes grows with its conversations and no faster, and its memory does not grow with their texts."""

from __future__ import annotations

import sqlite3
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from vera_local.bundle import DimensionRating, Template
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import Engine, Finish, Limits, Reply, Request, Usage
from vera_local.engine.seen import Seen
from vera_local.judge import Mode, State, Verdict
from vera_local.run import Opening, Plan, Watcher, manifest, run
from vera_local.run.exporting import Layout, export_run
from vera_local.run.publishing import publish
from vera_local.run.reading import read_run
from vera_local.run.store import NAME, Store
from vera_local.score import framing

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
MODEL = "smollm2-135m-instruct"


def always_alike(request: Request) -> str:
    """The same walk in every conversation, of other messages."""
    if request.pattern is None:
        return f"message {request.sampling.seed}"
    if request.pattern.startswith("(none|"):
        return "2, 4"
    first, second, *_ = [o.replace("\\", "") for o in request.pattern.strip("()$").split("|")]
    return second if second == "No" and "declines" not in request.pattern else first


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Work done inside: calls of Python functions, prompts rendered, statements to SQLite and its own steps."""
    work: Counter[str] = Counter()
    connect, render = sqlite3.connect, Template.render

    def connected(*args: Any, **more: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **more)
        connection.set_trace_callback(lambda _: work.update(statements=1))
        connection.set_progress_handler(lambda: work.update(sqlite_steps=100), 100)
        return connection

    def rendered(self: Template, values: Any) -> str:
        work["prompts"] += 1
        return render(self, values)

    def called(frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            work["calls"] += 1

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", connected)
        patched.setattr(Template, "render", rendered)
        sys.setprofile(called)
        try:
            yield work
        finally:
            sys.setprofile(None)


async def test_no_step_takes_more_for_each_conversation_where_there_are_more(
    tmp_path: Path,
    make: MakePlan,
    answering: Answering,
    watcher: Watcher,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From 20 conversations to 40 each adds as much to the work as from 10 to 20."""

    async def all_of(conversations: int, name: str = "") -> Counter[str]:
        out = tmp_path / f"{conversations}{name}"
        plan = make(out=out, personas=10, repeats=conversations // 10, turns=6)
        with counted(monkeypatch) as work:
            await run(plan, answering(always_alike), watcher)
            read_run(plan.out, plan.bundle, None, None)
            export_run(plan.out, plan.bundle, Layout.VERA_MH, tmp_path / f"{out.name} exported")
        return work

    await all_of(10, "before")  # What is done once in a process.
    ten, twenty, forty = [await all_of(n) for n in (10, 20, 40)]
    for kind, done in forty.items():
        few, many = (twenty[kind] - ten[kind]) / 10, (done - twenty[kind]) / 20
        assert many < 1.05 * few + 1, f"{kind}: {few:.0f} for each of the first ones, {many:.0f} for each of the later"


TEXT = "word " * 2000
"""10 KB; of ASCII, which takes one byte for a character."""


def judged(plan: Plan, conversations: int) -> None:
    """A run with long messages and long reasons: 150 KB of each conversation."""
    question = plan.bundle.rubric.questions[0].id
    ratings = [DimensionRating(d, plan.bundle.rubric.ratings[0], ()) for d in plan.bundle.rubric.dimensions]
    plan.out.mkdir()
    manifest.enter(plan)
    manifest.enter_judges(plan)
    with Store.open(plan.out) as store:
        for n in range(conversations):
            said = tuple(Message(s, f"{n} {i} {TEXT}") for i in range(5) for s in (Speaker.PERSONA, Speaker.CHATBOT))
            store.record([Conversation(f"c{n}", plan.personas[0].name, n + 1, said, Ending.TURNS)])
            reason = f"{n} {TEXT * 5}"
            store.add_verdict(f"c{n}", "j", 1, Verdict(question, State.ANSWERED, "Yes", Mode.REASON, rationale=reason))
            store.set_ratings(f"c{n}", "j", ratings)


def shown(plan: Plan, out: Path) -> None:
    """Everything that is made of a run's store."""
    with Store.open(plan.out) as store:
        publish(plan.out, plan.bundle, store)
    read_run(plan.out, plan.bundle, None, None)
    for layout in Layout:
        export_run(plan.out, plan.bundle, layout, out / layout.value)


def test_what_is_derived_of_a_run_does_not_hold_its_texts(
    tmp_path: Path, make: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(framing, "PART", 5)
    peaks = {}
    for conversations in (20, 20, 100):
        plan = make(out=tmp_path / f"run {len(list(tmp_path.iterdir()))}", repeats=conversations)
        judged(plan, conversations)
        tracemalloc.start()
        shown(plan, plan.out.with_name(f"{plan.out.name} out"))
        peaks[conversations] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (plan.out / NAME).stat().st_size > 100 * 150_000
    assert peaks[100] < peaks[20] + 1_000_000, "80 conversations more have 12 MB of texts"


async def test_a_run_holds_the_texts_of_the_conversations_under_way_alone(
    tmp_path: Path, make: MakePlan, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(framing, "PART", 5)
    # What is remembered of earlier prompts has a bound of its own.
    monkeypatch.setattr(Seen.__init__, "__defaults__", (100_000,))

    def wordy(request: Request) -> Reply:
        usage, simulates = Usage(1, 0, 1), request.sampling.max_tokens == 200
        if request.pattern is None and not simulates:
            return Reply(f"{request.sampling.seed} {TEXT * 5}", Finish.STOP, usage)
        return Reply(always_alike(request), Finish.STOP, usage)

    async def opener(opening: Opening) -> Engine:
        return FakeEngine(wordy, Limits(context=10**6, kv_tokens=None, sequences=2), light=True)

    peaks = {}
    for place, repeats in enumerate((2, 2, 20)):
        judge = [{"model": MODEL, "confidence": False}]
        simulator = {"model": MODEL, "max_tokens": 200}
        plan = make(out=tmp_path / str(place), personas=2, repeats=repeats, turns=4, judge=judge, simulator=simulator)
        tracemalloc.start()
        outcome = await run(plan, opener, watcher)
        peaks[repeats] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert sum(head.characters for head in outcome.conversations) > 40 * 100_000
    assert peaks[20] < peaks[2] + 1_000_000, "36 conversations more have 3.6 MB of texts"
