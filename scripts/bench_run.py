"""Runs on an engine that is open already, their stages timed. Knows no engine library."""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench_engine import Measured, Recorder
from rich.console import Console

from vera_local.bundle import DimensionRating, load_bundle
from vera_local.conversation import Conversation
from vera_local.engine.grammar import pattern_of
from vera_local.engine.seam import NO_USAGE, Engine
from vera_local.run import Opener, Opening, RunConfig, Watcher, judge_run, make_plan, run
from vera_local.run.importing import import_run
from vera_local.run.progress import Meter
from vera_local.run.recordings import Found
from vera_local.run.store import Given, Store


class Stopwatch(Watcher):
    """Shows nothing and takes the time of stages; `begin` is called when one begins, after all that prepares it."""

    def __init__(self, begin: Callable[[], None]) -> None:
        super().__init__(Console(file=io.StringIO()))
        self.seconds = 0.0
        self._begin = begin

    @contextmanager
    def stage(self, meter: Meter) -> Iterator[Callable[[], None]]:
        """Show a stage while it runs."""
        self._begin()
        began = time.perf_counter()
        with super().stage(meter) as changed:
            yield changed
        self.seconds += time.perf_counter() - began


class Judged(NamedTuple):
    """What judging took, and what came of it."""

    measured: Measured
    verdicts: list[Given]
    ratings: list[tuple[str, str, DimensionRating]]

    @property
    def kept(self) -> int:
        """Prompt tokens computed and tokens written for these verdicts."""
        used = sum((given.verdict.usage for given in self.verdicts), NO_USAGE)
        return used.computed + used.output


async def judged(config: RunConfig, conversations: Sequence[Conversation], engine: Recorder) -> Judged:
    """Judge these conversations in a run of their own, from the beginning."""
    with tempfile.TemporaryDirectory() as folder:
        plan = make_plan(config.model_copy(update={"out": Path(folder) / "run"}))
        import_run(plan, Found(tuple(conversations), {}, ()))
        watch = Stopwatch(engine.begin)
        await judge_run(plan, _opener(engine), watch)
        with Store.open(plan.out) as store:
            measured = Measured(watch.seconds, engine.usage)
            return Judged(measured, list(store.all_verdicts()), list(store.ratings()))


async def simulated(config: RunConfig, engine: Recorder) -> Measured:
    """Hold the conversations of a run, from the beginning."""
    with tempfile.TemporaryDirectory() as folder:
        plan = make_plan(config.model_copy(update={"out": Path(folder) / "run"}))
        watch = Stopwatch(engine.begin)
        await run(plan, _opener(engine), watch, judge=False)
        return Measured(watch.seconds, engine.usage)


def grammars(config: RunConfig) -> set[str]:
    """The patterns of all questions of the rubric."""
    questions = load_bundle(config.bundle).rubric.questions
    return {pattern_of([o.answer for o in q.options]) for q in questions if not q.auto}


def _opener(engine: Engine) -> Opener:
    async def opened(opening: Opening) -> Engine:
        return engine

    return opened
