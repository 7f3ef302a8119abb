"""Whole runs on a GPU that is too small for all their models: the same results, and nobody is asked while asleep."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.answers import at_random
from tests.run.test_side_by_side import contents
from vera_local.engine.fake import FakeEngine
from vera_local.engine.machine import Machine
from vera_local.engine.placement import Residency
from vera_local.engine.seam import Engine, EngineDied, Limits, Reply, Request
from vera_local.run import Opening, Plan, Watcher, judge_run, run
from vera_local.run.store import Store

MakePlan = Callable[..., Plan]
GB = 10**9
TWO_JUDGES = {
    "simulator": ["smollm2-135m-instruct"],
    "chatbot": "qwen3-8b",
    "judge": ["qwen3-14b", "qwen3-32b-fp8"],
    "check_personas": True,
}
TALKERS = {"simulator": ["qwen3-14b", "qwen3-14b-awq"], "chatbot": "qwen3-8b", "judge": ["qwen3-14b"]}
SIZES = [
    (TWO_JUDGES, 90, 1000, Residency.STAGES),
    (TWO_JUDGES, 60, 1, Residency.RELOAD),
    (TALKERS, 58, 1000, Residency.TURNS),
]
on_small_gpus = pytest.mark.parametrize(("models", "gpu", "ram", "residency"), SIZES, ids=[s[-1].value for s in SIZES])


class Sleepy(FakeEngine):
    """Takes a moment to sleep and to wake, and must not be asked meanwhile."""

    def __init__(self, name: str, told: list[str], life: list[int] | None) -> None:
        super().__init__(at_random, Limits(100_000, 1_000_000, 8, ridge=16))
        self._name, self._told, self._life = name, told, life
        self._awake = True
        told.append(f"open {name}")

    async def generate(self, request: Request) -> Reply:
        assert self._awake and not self.closed
        if self._life is not None:
            self._life[0] -= 1
            if self._life[0] < 0:
                raise EngineDied("gone")
        reply = await super().generate(request)
        assert self._awake
        return reply

    async def sleep(self) -> None:
        self._awake = False
        self._told.append(f"sleep {self._name}")
        await asyncio.sleep(0.001)

    async def wake(self) -> None:
        await asyncio.sleep(0.001)
        self._awake = True


class Opened:
    """Opens them; all die when together they were asked as often as `life` says."""

    def __init__(self, life: int | None = None) -> None:
        self.told: list[str] = []
        self.engines: list[Sleepy] = []
        self._life = None if life is None else [life]

    async def __call__(self, opening: Opening) -> Engine:
        self.engines.append(Sleepy(opening.player.profile.name, self.told, self._life))
        return self.engines[-1]

    @property
    def opened(self) -> list[str]:
        return [event.removeprefix("open ") for event in self.told if event.startswith("open ")]


def on(monkeypatch: pytest.MonkeyPatch, gpu: int, ram: int) -> None:
    machine = Machine("cuda", "one GPU", gpu * GB, 1)
    for module in ("host", "needs"):
        monkeypatch.setattr(f"vera_local.run.{module}.this_machine", lambda: machine)
    monkeypatch.setattr("vera_local.run.host.free_ram_bytes", lambda: ram * GB)


def chosen(plan: Plan) -> str:
    return str(json.loads((plan.out / "manifest.json").read_text())["residency"]["choice"])


def checks(plan: Plan) -> int:
    with Store.open(plan.out) as store:
        return len(store.simulated.checked(plan.judges[0].name))


@pytest.fixture
def ample(
    make: MakePlan, watcher: Watcher, monkeypatch: pytest.MonkeyPatch, tmp_path: Any, models: dict[str, Any]
) -> dict[str, list[Any]]:
    """What the run holds where there is room for all."""
    on(monkeypatch, 1000, 1000)
    plan = make(out=tmp_path / "ample", **models)
    asyncio.run(run(plan, Opened(), watcher))
    assert chosen(plan) == Residency.TOGETHER
    return contents(plan)


@on_small_gpus
def test_a_small_gpu_gives_the_same_run(
    make: MakePlan, watcher: Watcher, monkeypatch: pytest.MonkeyPatch, ample: dict[str, list[Any]],
    models: dict[str, Any], gpu: int, ram: int, residency: Residency,
) -> None:  # fmt: skip
    on(monkeypatch, gpu, ram)
    plan, opener = make(**models), Opened()
    asyncio.run(run(plan, opener, watcher))
    assert chosen(plan) == residency
    assert contents(plan) == ample
    assert len(opener.opened) == len(set(opener.opened)), "a model was loaded twice"
    assert any(event.startswith("sleep") for event in opener.told) == (residency is not Residency.RELOAD)
    assert all(engine.closed for engine in opener.engines)
    if models is TWO_JUDGES:
        assert checks(plan) == 4


@on_small_gpus
@pytest.mark.parametrize("apart", [False, True], ids=["in one", "simulate, then judge"])
def test_a_run_that_dies_again_and_again_ends_as_if_it_had_not(
    make: MakePlan, watcher: Watcher, monkeypatch: pytest.MonkeyPatch, ample: dict[str, list[Any]],
    models: dict[str, Any], gpu: int, ram: int, residency: Residency, apart: bool,
) -> None:  # fmt: skip
    on(monkeypatch, gpu, ram)
    plan, draw, deaths = make(**models), random.Random(gpu), 0

    async def attempt(opener: Opened) -> None:
        await run(plan, opener, watcher, judge=not apart)
        if apart:
            await judge_run(plan, opener, watcher)

    while True:
        opener = Opened(draw.randrange(20, 120))
        try:
            asyncio.run(attempt(opener))
        except EngineDied:
            deaths += 1
            assert all(engine.closed for engine in opener.engines)
        else:
            break
    assert deaths
    assert contents(plan) == ample
    again = Opened()
    asyncio.run(attempt(again))
    assert not again.engines, "there is nothing left to do"
