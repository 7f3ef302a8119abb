"""How far a spread run goes: as runs on virtual time went, and which limit comes first."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vera_local.engine.gpus import find_gpu
from vera_local.engine.machine import Machine
from vera_local.errors import UserError
from vera_local.run import Plan
from vera_local.run.forecast import Forecast, Stage, forecast
from vera_local.run.paper import BY_CHARACTERS
from vera_local.run.reach import COMMITS_PER_SECOND, Reach, load_of, reach, shape_of
from vera_local.run.store import NAME

MakePlan = Callable[..., Plan]
SCRIPTS = Path(__file__).parents[2] / "scripts"
NEAR = 0.06
ROLES = ("simulator", "chatbot", "judge")
ONE = {"simulator": "qwen3-32b-fp8", "chatbot": "qwen3-32b-fp8", "judge": ["qwen3-32b-fp8"]}
SHORT = {"bundle": "psychosis", "turns": 2, "personas": 19, "chatbot": "qwen3-14b", "judge": ["qwen3-14b"]}


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module("bench_scale")


async def on(plan: Plan, gpus: int, name: str = "H200") -> Reach:
    gpu = find_gpu(name)
    assert gpu is not None
    workers, share, machine = shape_of(plan, Machine("cuda", gpu.name, gpu.memory_bytes, gpus))
    return reach(await forecast(share, lambda player: BY_CHARACTERS, machine, gpu), workers, gpus)


async def fixed(scale: Any, plan: Plan) -> Forecast:
    """A forecast for one of the engines of fixed rate."""
    told = await forecast(plan, lambda player: BY_CHARACTERS, Machine("cuda", "none", 10**12, 1), None)
    pace = scale.FIXED
    took = {"simulate": pace.message, "judge": 7 * pace.verdict}
    stages = tuple(Stage(name, plan.count * each / pace.sequences, True) for name, each in took.items())
    return replace(told, stages=stages, lines=tuple(replace(line, at_once=pace.sequences) for line in told.lines))


@pytest.mark.parametrize(("engines", "each"), [(1, 40), (8, 20), (64, 20), (256, 10), (1000, 10)])
async def test_it_foresees_runs_on_virtual_time(
    scale: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engines: int, each: int
) -> None:
    monkeypatch.setattr(scale, "FIXED", replace(scale.FIXED, sequences=1, room=2))
    foreseen = reach(await fixed(scale, scale.plan_of(engines * each, tmp_path)), engines, engines)
    held = await asyncio.to_thread(scale.curve, engines, each)
    assert foreseen.seconds == pytest.approx(held["virtual_s"], rel=NEAR)


async def test_it_foresees_a_driver_that_is_too_slow(
    scale: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(scale, "COMMIT_SECONDS", 0.1)
    foreseen = reach(await fixed(scale, scale.plan_of(8 * 40, tmp_path)), 8, 8, sustained=10)
    held = await asyncio.to_thread(scale.curve, 8, 40)
    assert foreseen.bounds[0].name == "driver commits"
    assert foreseen.seconds == pytest.approx(held["virtual_s"], rel=NEAR)


async def test_a_store_is_as_large_as_foreseen(scale: Any, tmp_path: Path) -> None:
    plan = scale.plan_of(2000, tmp_path)
    with scale.begun(plan) as store:
        await scale.run_over(plan, store, scale.gathering(4, scale.AT_ONCE))
        one = next(store.conversations())
        load = load_of(replace(await fixed(scale, plan), samples=(one,)))
        assert sum(length.messages for length in store.lengths()) == load.messages
        assert len(list(store.all_verdicts())) == load.verdicts
    assert (plan.out / NAME).stat().st_size == pytest.approx(load.store, rel=0.25)


async def test_twice_the_gpus_take_half_the_time_and_cost_the_same(make: MakePlan) -> None:
    plan = make(**SHORT, repeats=100_000)
    few, many = await on(plan, 8), await on(plan, 16)
    assert (few.workers, many.workers, few.alone.machine.gpus) == (8, 16, 1)
    assert few.seconds is not None
    assert many.seconds == pytest.approx(few.seconds / 2, rel=0.01)
    assert many.cost(2.0) == pytest.approx(few.cost(2.0), rel=0.01)
    assert few.bounds[0].name == "GPUs"


async def test_so_many_gpus_are_too_many_for_one_driver(make: MakePlan) -> None:
    plan = make(**SHORT, repeats=600_000)
    told = await on(plan, 1000)
    assert plan.count > 10_000_000
    assert told.commits_per_second is not None
    assert told.commits_per_second > COMMITS_PER_SECOND
    assert told.bounds[0].name == "driver commits"
    assert told.seconds == pytest.approx(plan.count * 9 / COMMITS_PER_SECOND)
    assert (await on(plan, 2000)).seconds == told.seconds


async def test_a_cache_that_holds_few_conversations_is_named(make: MakePlan) -> None:
    told = await on(make(**ONE, personas=100, turns=30, repeats=1000), 64)
    assert told.bounds[0].name == "KV cache"
    assert "each worker has room for" in told.bounds[0].why


async def test_workers_with_few_conversations_wait_for_the_length_of_one(make: MakePlan) -> None:
    plan = make(**ONE, personas=100, turns=30, repeats=2)
    (few, some), most = [await on(plan, gpus) for gpus in (8, 16)], await on(plan, 200)
    room = min(line.at_once or 0 for line in few.alone.lines)
    assert 200 / 16 < room < 200 / 8
    assert [told.bounds[0].name for told in (few, some, most)] == ["KV cache", "GPUs", "length of one conversation"]
    assert most.bounds[0].why == "all of a worker's go on at once, 1 at most"
    assert few.seconds is not None and some.seconds is not None and most.seconds is not None
    assert few.seconds > some.seconds > most.seconds == (await on(plan, 100)).seconds


async def test_a_chatbot_that_takes_few_requests_is_named(make: MakePlan) -> None:
    slow = {"kind": "openai", "model": "m", "url": "http://127.0.0.1:9/v1", "requests_per_minute": 60.0}
    plan = make(**ONE | {"chatbot": slow}, personas=10, turns=4)
    told = await on(plan, 64)
    assert told.bounds[0].name == "the chatbot's limit"
    assert told.seconds == pytest.approx(10 * 2), "two replies in each of ten conversations, one a second"
    assert told.workers == 8, "no more than requests that the chatbot takes at once"


async def test_a_worker_has_the_gpus_that_its_models_need(make: MakePlan) -> None:
    two = ONE | {"judge": ["qwen3-14b"], "personas": 20}
    assert (await on(make(**two), 8)).workers == 8, "both models fit one H200"
    assert (await on(make(**two), 8, "H100 SXM")).workers == 4, "but not one of 80 GB"
    assert (await on(make(**two, ray="local", actor_gpus=4), 8)).workers == 2
    assert (await on(make(**two, ray="local", actors=3), 8)).workers == 3
    without = shape_of(make(**two, ray="local", actors=3, actor_gpus=0), Machine("cuda", "H200", 10**11, 8))
    assert (without.workers, without.machine.gpus) == (3, 0)
    with pytest.raises(UserError, match="--gpus 2: one worker of this run needs 4; give at least as many"):
        await on(make(**two, ray="local", actor_gpus=4), 2)


def test_workers_without_a_gpu_are_as_many_as_are_asked_for(make: MakePlan) -> None:
    machine, served = Machine("cpu", "2 cores", 10**12, 0), dict.fromkeys(ROLES, "qwen3-14b@http://127.0.0.1:9/v1")
    assert shape_of(make(**ONE, ray="local", personas=20, actors=8), machine).workers == 8
    assert shape_of(make(**ONE, ray="local", personas=20), machine).workers == 1
    assert shape_of(make(**ONE, ray="local", personas=2, actors=8), machine).workers == 2
    on_servers = shape_of(make(**served, ray="local", personas=20, actors=8), replace(machine, device="cuda", gpus=2))
    assert (on_servers.workers, on_servers.machine.gpus) == (8, 0), "they host nothing"


async def test_without_a_known_speed_no_limit_is_made_up(make: MakePlan) -> None:
    told = await forecast(make(**SHORT), lambda player: BY_CHARACTERS, Machine("cuda", "none", 10**12, 1), None)
    beyond = reach(told, 8, 8)
    assert (beyond.seconds, beyond.bounds, beyond.cost(1.0)) == (None, (), None)
    assert beyond.load.verdicts == 19 * 7
