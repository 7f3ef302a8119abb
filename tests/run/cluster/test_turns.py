"""Workers on whose GPUs the models of a run do not fit together, and which are lost at any moment: what comes out is
what one process with room for all of them gives."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from tests.run.cluster.local import Local, LocalRemote
from tests.run.cluster.test_resumed import CHECKS, rows
from tests.run.cluster.test_spread import spread_over
from tests.run.test_one_gpu import Opened, on
from tests.run.test_side_by_side import contents
from vera_local.engine.placement import Residency
from vera_local.run import Plan, Watcher, run
from vera_local.run.cluster.wire import Failure, Line, Ready, Report, Task
from vera_local.run.host import Host
from vera_local.run.needs import needs_of

MakePlan = Callable[..., Plan]
HOW = {
    "personas": 1,
    "repeats": 2,
    "simulator": ["smollm2-135m-instruct", "qwen3-8b"],
    "chatbot": "qwen3-8b",
    "judge": ["qwen3-14b", "qwen3-32b-fp8"],
    "judge_repeats": 2,
    "check_personas": True,
}
SIZES = [(90, 1000, Residency.STAGES), (60, 1, Residency.RELOAD)]
APART = 24
"""Calls of workers between two losses at most."""


class Fate:
    """Decides which call of a worker is its last, so many times in all."""

    def __init__(self, seed: int, losses: int) -> None:
        self._draw = random.Random(seed)
        self._calls = itertools.count(1)
        self._points = [*itertools.accumulate(self._draw.randint(1, APART) for _ in range(losses))]

    async def strikes(self) -> bool:
        """Whether this call is one, after a pause in which others may have their turn."""
        await asyncio.sleep(0.002 * self._draw.random())
        return next(self._calls) in self._points


@dataclass
class Rough(LocalRemote):
    """A worker that may be lost before or behind whatever is asked of it."""

    fate: Fate = field(kw_only=True)

    async def ready(self) -> Ready | Failure:
        await self._may_be_lost()
        ready = await super().ready()
        await self._may_be_lost()
        return ready

    async def report(self, pause: float) -> Report:
        try:
            report = await super().report(pause)
        except asyncio.CancelledError:
            # It was lost with what it was given meanwhile.
            self._must_be_there()
            raise
        await self._may_be_lost()
        return report

    async def give(self, tasks: Sequence[Task], closed: Collection[Line]) -> None:
        await self._may_be_lost()
        await super().give(tasks, closed)
        await self._may_be_lost()

    async def _may_be_lost(self) -> None:
        if await self.fate.strikes():
            self.gone = True
            await self.worker.aclose()
        self._must_be_there()


@pytest.mark.parametrize(("gpu", "ram", "residency"), SIZES, ids=[s[-1].value for s in SIZES])
async def test_workers_whose_models_take_turns_give_the_same_run(
    make: MakePlan, watcher: Watcher, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gpu: int, ram: int,
    residency: Residency,
) -> None:  # fmt: skip
    alone, plan, opener = make(out=tmp_path / "alone", **HOW), make(**HOW), Opened()
    await run(alone, Opened(), watcher)
    on(monkeypatch, gpu, ram)
    assert Host(opener, needs_of(plan, simulate=True, judge=True)).arrangement.residency is residency
    gather = Local(opener, 3, remote=partial(Rough, fate=Fate(gpu, losses=5)))
    await spread_over(plan, gather, watcher)
    assert contents(plan) == contents(alone)
    assert rows(plan, CHECKS) == rows(alone, CHECKS) != []
    assert any(remote.gone for remote in gather.fleets[0].started)
    assert any(event.startswith("sleep") for event in opener.told) == (residency is Residency.STAGES)
    assert all(engine.closed for engine in opener.engines)
