"""Forecasts on machines that are not here: what fits, how many conversations at once, how long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vera_local.engine.gpus import find_gpu
from vera_local.engine.machine import Machine
from vera_local.engine.placement import Residency
from vera_local.run import Plan
from vera_local.run.forecast import Forecast, forecast
from vera_local.run.paper import BY_CHARACTERS
from vera_local.run.rehearsal import CHATBOT, JUDGE, JUDGING, SIMULATOR, TALK
from vera_local.run.timing import Line

MakePlan = Callable[..., Plan]
ONE = {"simulator": "qwen3-32b-fp8", "chatbot": "qwen3-32b-fp8", "judge": ["qwen3-32b-fp8"]}
TWO = {"simulator": "qwen3-32b-fp8", "chatbot": "qwen3-14b", "judge": ["qwen3-32b-fp8"]}


async def on(plan: Plan, gpu: str, gpus: int = 1) -> Forecast:
    known = find_gpu(gpu)
    assert known is not None
    machine = Machine("cuda", known.name, known.memory_bytes, gpus)
    return await forecast(plan, lambda player: BY_CHARACTERS, machine, known)


def of(told: Forecast, role: str) -> Line:
    return next(line for line in told.lines if line.part.place.role == role)


async def test_one_model_for_all_roles_is_loaded_once(make: MakePlan) -> None:
    told = await on(make(personas=40, turns=30, **ONE), "H200")
    assert len(told.housing.engines) == 1
    (engine,) = told.housing.engines.values()
    assert engine.kv_tokens is not None
    # 0.9 of 141 GB, less 34.3 GB of weights and what an engine takes beside them, at 262,144 bytes a token.
    assert 300_000 < engine.kv_tokens < 360_000
    both = of(told, SIMULATOR).part.held + of(told, CHATBOT).part.held
    assert of(told, SIMULATOR).at_once == of(told, CHATBOT).at_once == int(0.9 * engine.kv_tokens / both)
    assert of(told, JUDGE).at_once == int(0.9 * engine.kv_tokens / of(told, JUDGE).part.held)


async def test_times_add_up_and_cost_what_they_take(make: MakePlan) -> None:
    told = await on(make(personas=40, turns=30, **TWO), "H200")
    stages = {stage.name: stage.seconds for stage in told.stages}
    assert told.gpus == 1
    assert all(seconds is not None and seconds > 0 for seconds in stages.values())
    assert told.seconds == pytest.approx(sum(s for s in stages.values() if s is not None))
    talk = [line.seconds for line in told.lines if line.part.place.stage == TALK]
    assert stages[TALK] == pytest.approx(sum(s for s in talk if s is not None)), "both speak on one GPU"
    assert told.seconds is not None
    assert told.cost(3.0) == pytest.approx(told.seconds / 1200)


async def test_a_faster_gpu_and_more_gpus_take_less(make: MakePlan) -> None:
    plan = make(personas=40, turns=30, **ONE)
    seconds = [(await on(plan, gpu)).seconds for gpu in ("RTX PRO 6000", "H100 NVL", "H200", "B200")]
    known = [s for s in seconds if s is not None]
    assert len(known) == 4
    assert known == sorted(known, reverse=True)
    copies = await on(make(personas=40, turns=30, replicas=2, **ONE), "H200", 2)
    assert copies.seconds is not None
    assert copies.gpus == 2
    assert 0.4 * known[2] < copies.seconds < 0.7 * known[2]


async def test_two_gpus_let_both_speakers_work_at_the_same_time(make: MakePlan) -> None:
    plan = make(personas=40, turns=30, **TWO)
    one, two = await on(plan, "H200"), await on(plan, "H200", 2)
    assert two.housing.arrangement is not None
    assert two.housing.arrangement.residency is Residency.TOGETHER
    talk = [line.seconds or 0 for line in two.lines if line.part.place.stage == TALK]
    assert two.stages[0].seconds == pytest.approx(max(talk))
    assert (two.seconds or 0) < (one.seconds or 0)


async def test_what_does_not_fit_is_said_and_not_timed(make: MakePlan) -> None:
    told = await on(make(**ONE), "RTX 4090")
    assert "qwen3-32b-fp8 needs" in told.housing.problem
    assert told.seconds is None
    assert told.cost(1.0) is None
    assert all(line.at_once is None for line in told.lines)
    assert of(told, SIMULATOR).part.work.requests > 0, "requests are told all the same"


async def test_speakers_that_take_turns_are_charged_for_it(make: MakePlan) -> None:
    plan = make(personas=4, turns=30, simulator="qwen3-32b", chatbot="gemma-3-27b-it", judge=["qwen3-32b"])
    told = await on(plan, "H100 NVL")
    assert told.housing.arrangement is not None
    assert told.housing.arrangement.residency is Residency.TURNS
    talk = sum(line.seconds or 0 for line in told.lines if line.part.place.stage == TALK)
    moved = (65.5e9 + 54.9e9) / 25e9
    waves = -(-4 // (of(told, SIMULATOR).at_once or 1))
    assert told.stages[0].seconds == pytest.approx(talk + waves * 30 * moved, rel=0.01)


async def test_reasoning_takes_longer_than_answering_at_once(make: MakePlan) -> None:
    plans: list[dict[str, Any]] = [{}, {"judge_mode": "reason"}]
    told = [await on(make(personas=10, turns=10, **ONE, **mode), "H200") for mode in plans]
    seconds = [next(s.seconds or 0 for s in one.stages if s.name == JUDGING) for one in told]
    assert seconds[1] > 5 * seconds[0]


async def test_a_chatbot_behind_a_url_has_no_time_and_bounds_what_is_at_work(make: MakePlan) -> None:
    plan = make(personas=40, turns=6, **ONE | {"chatbot": "mine@http://127.0.0.1:9/v1"})
    told = await on(plan, "H200")
    assert told.untimed == ("mine",)
    assert of(told, CHATBOT).seconds is None
    assert of(told, SIMULATOR).at_once == 8, "its concurrency"
    assert told.seconds is not None


async def test_nothing_is_known_of_a_machine_without_a_gpu(make: MakePlan) -> None:
    told = await forecast(make(), lambda player: BY_CHARACTERS, Machine("cpu", "2 CPU cores", 25 * 10**9, 0), None)
    assert told.seconds is None
    assert of(told, JUDGE).part.work.requests > 0
    assert told.gpus == 0


async def test_every_assumption_is_listed(make: MakePlan) -> None:
    told = " ".join((await on(make(**TWO), "H200")).assumptions)
    for words in (
        "50% of their token limits",
        "Every path through the rubric",
        "qwen3-14b: 4 characters are one token",
        "KV cache",
        "asked ahead",
        "H200 by its data sheet",
        "Prefill reaches 50%",
        "25 GB/s",
        "follow one another",
    ):
        assert words in told
