"""How the driver uses many engines, on virtual time: 64 of a fixed rate do almost 64 times the work of one."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.answers import at_random
from tests.run.cluster.local import Local
from tests.run.cluster.test_spread import SMALL, spread_over
from tests.run.test_side_by_side import late
from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import Engine, Limits, Request
from vera_local.run import Opening, Plan, Watcher

SCRIPTS = Path(__file__).parents[3] / "scripts"
ENOUGH = 0.95
SEQUENCES = 2


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module("bench_scale")


@pytest.fixture
def virtually(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module("bench_virtual").virtually


class FixedRate:
    """Opens engines, each of which serves so many requests at once, and each request in a second."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, opening: Opening) -> Engine:
        served = asyncio.Semaphore(SEQUENCES)

        async def answer(request: Request) -> str:
            async with served:
                self.asked += 1
                await asyncio.sleep(1.0)
            return at_random(request)

        return FakeEngine(answer, Limits(context=100_000, kv_tokens=None, sequences=SEQUENCES), light=True)


def test_the_clock_jumps_to_what_comes_next(virtually: Any) -> None:
    order: list[tuple[str, float]] = []

    async def at(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        order.append((name, asyncio.get_running_loop().time()))

    async def both() -> None:
        await asyncio.gather(at("late", 86_400), at("early", 0.25))

    assert virtually(both())[1] == pytest.approx(86_400)
    assert [name for name, _ in order] == ["early", "late"]
    assert [when for _, when in order] == pytest.approx([0.25, 86_400])


def test_what_would_wait_for_ever_is_told(virtually: Any) -> None:
    with pytest.raises(RuntimeError, match="everything waits"):
        virtually(asyncio.Event().wait())


def test_64_engines_are_almost_64_times_as_fast_as_one(scale: Any) -> None:
    assert 0.99 < scale.curve(1, 160)["speed"] <= 1, "it is told by what one engine can do at most"
    assert scale.curve(64, 80)["speed"] >= ENOUGH * 64


def test_so_do_64_whole_workers(scale: Any, virtually: Any, tmp_path: Path) -> None:
    plan, opener = scale.plan_of(64 * 32, tmp_path), FixedRate()
    with scale.begun(plan) as store:
        _, seconds = virtually(scale.run_over(plan, store, Local(opener, 64)))
        assert len(list(store.ratings())) == plan.count * len(plan.bundle.rubric.dimensions)
    alone = opener.asked / SEQUENCES
    assert alone / seconds >= ENOUGH * 64, "one engine takes so long at least"


def test_a_conversation_is_judged_where_it_was_held(
    virtually: Any, make: Callable[..., Plan], answering: Callable[..., Any], watcher: Watcher
) -> None:
    plan, gather = make(personas=24, turns=6), Local(answering(late(1), SMALL), 3)
    virtually(spread_over(plan, gather, watcher))
    held = {task.conversation.id: r.name for r in gather.fleets[0].started for task in r.tasks if not task.known}
    judged = {task.conversation.id: r.name for r in gather.fleets[0].started for task in r.tasks if task.known}
    assert held.keys() == judged.keys()
    same = sum(held[id] == judged[id] for id in held)
    assert same >= 16, "the others were taken by workers that had nothing to do"


def test_a_driver_that_is_too_slow_bounds_it(scale: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "COMMIT_SECONDS", 0.1)
    told = scale.curve(8, 40)
    assert told["commits_per_s"] == pytest.approx(10, rel=0.1)
    assert told["of_all"] < 0.8
