"""A run whose engine is lost under it opens it anew, asks again what was under way, and ends as an undisturbed one."""

from __future__ import annotations

import asyncio
import io
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from tests.answers import at_random
from tests.kept import must_be_the_same
from tests.run.conftest import MakePlan, Opened
from vera_local.engine.probe import SEED as PROBE
from vera_local.engine.seam import EngineDied, EngineLost, Request
from vera_local.run import Watcher, reviving, run
from vera_local.run.stats import work_of

Answering = Callable[..., Opened]


class Failing:
    """Answers, but loses the engine at the given requests, counted from 0 without probes; each once."""

    def __init__(self, *moments: int, kind: type[Exception] = EngineLost) -> None:
        self.left = sorted(moments)
        self.asked = 0
        self.kind = kind

    def __call__(self, request: Request) -> str:
        if request.sampling.seed != PROBE:
            self.asked += 1
            if self.left and self.asked > self.left[0]:
                self.left.pop(0)
                raise self.kind("the engine's process ended")
        return at_random(request)


@pytest.fixture
async def calm(tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher) -> Path:
    plan = make(out=tmp_path / "calm")
    await run(plan, answering(at_random), watcher)
    return plan.out


@pytest.mark.parametrize("moment", random.Random(9).sample(range(22), 6))
async def test_a_lost_engine_is_opened_anew(
    make: MakePlan, answering: Answering, watcher: Watcher, calm: Path, moment: int
) -> None:
    plan, opened = make(), answering(Failing(moment))
    outcome = await run(plan, opened, watcher)
    assert len(opened.engines) == 2 and all(engine.closed for engine in opened.engines)
    assert outcome.restarts == work_of(plan.out).restarts == 1
    must_be_the_same(plan.out, calm)


async def test_it_is_said_and_counted_over_sessions(make: MakePlan, answering: Answering, calm: Path) -> None:
    told = io.StringIO()
    plan = make()
    with pytest.raises(EngineDied):
        await run(plan, answering(Failing(3, 10, 18)), Watcher(Console(file=told, width=200)))
    assert "the engine's process ended; opening the engines anew and asking again what was under way (1 of 2)" in (
        told.getvalue()
    )
    assert (await run(plan, answering(Failing(2)), Watcher(Console(file=told)))).restarts == 3
    must_be_the_same(plan.out, calm)


async def test_an_engine_that_is_lost_again_and_again_ends_the_run(
    make: MakePlan, answering: Answering, watcher: Watcher, calm: Path
) -> None:
    plan, opened = make(), answering(Failing(*range(100)))
    with pytest.raises(EngineLost):
        await run(plan, opened, watcher)
    assert len(opened.engines) == 1 + reviving.RESTARTS
    await run(plan, answering(at_random), watcher)
    must_be_the_same(plan.out, calm)


async def test_what_is_no_engine_of_ours_is_not_opened_anew(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    opened = answering(Failing(3, kind=EngineDied))
    with pytest.raises(EngineDied):
        await run(make(), opened, watcher)
    assert len(opened.engines) == 1


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviving, "HUNG_SECONDS", 0.4)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("moment", random.Random(4).sample(range(22), 3))
async def test_a_hung_engine_is_lost(
    make: MakePlan, answering: Answering, watcher: Watcher, calm: Path, moment: int
) -> None:
    asked = 0

    async def hanging(request: Request) -> str:
        nonlocal asked
        asked += request.sampling.seed != PROBE
        if len(opened.engines) == 1 and asked > moment:
            await asyncio.Event().wait()
        return at_random(request)

    plan, opened = make(), answering(hanging)
    outcome = await run(plan, opened, watcher)
    assert outcome.restarts == 1 and len(opened.engines) == 2
    must_be_the_same(plan.out, calm)


async def test_an_engine_that_replies_slowly_is_not_hung(
    make: MakePlan, answering: Answering, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All replies together take longer than that, and each of them far less."""
    monkeypatch.setattr(reviving, "HUNG_SECONDS", 1.5)
    free = asyncio.Semaphore(1)

    async def slow(request: Request) -> str:
        async with free:
            await asyncio.sleep(0.06)
        return at_random(request)

    opened = answering(slow)
    assert (await run(make(), opened, watcher)).restarts == 0
