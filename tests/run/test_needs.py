"""What a plan's engines need, what is made of it, and where that is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vera_local.engine.machine import Machine
from vera_local.engine.seam import Request
from vera_local.errors import UserError
from vera_local.run import Plan, Watcher, run
from vera_local.run.manifest import read
from vera_local.run.needs import PROMPT, WIDTH, needs_of

MakePlan = Callable[..., Plan]
ROOT = Path(__file__).parents[2]


def on_gpu(monkeypatch: pytest.MonkeyPatch, gb: int) -> None:
    machine = Machine("cuda", "H", gb * 10**9, 1)
    for module in ("host", "needs"):
        monkeypatch.setattr(f"vera_local.run.{module}.this_machine", lambda: machine)
    monkeypatch.setattr("vera_local.run.host.free_ram_bytes", lambda: 10**12)


def test_one_engine_serves_all_stages_of_one_model(make: MakePlan) -> None:
    (needs,) = needs_of(make(), simulate=True, judge=True).values()
    assert [n.stage for n in needs] == ["talk", "judge:smollm2-135m-instruct"]
    assert {n.name for n in needs} == {"smollm2-135m-instruct"}
    assert needs[0].kv_bytes == 2**30
    assert not needs[0].can_sleep


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        ({"simulate": True, "judge": False}, ["talk"]),
        ({"simulate": False, "judge": True}, ["judge:qwen3-8b", "judge:qwen3-14b"]),
    ],
)
def test_stages_that_are_not_to_be_done_need_nothing(
    make: MakePlan, stages: dict[str, bool], expected: list[str]
) -> None:
    plan = make(judge=[{"model": "qwen3-8b"}, {"model": "qwen3-14b"}])
    assert [n.stage for needs in needs_of(plan, **stages).values() for n in needs] == expected


def test_what_a_server_hosts_needs_nothing_here(make: MakePlan) -> None:
    url = "http://gpu-box:8000/v1"
    plan = make(simulator={"model": "m", "url": url}, judge=[{"model": "j", "url": url}])
    assert [key.name for key in needs_of(plan, simulate=True, judge=True)] == ["smollm2-135m-instruct"]


def test_models_of_one_name_are_told_apart(make: MakePlan, tmp_path: Path) -> None:
    shipped = (ROOT / "models" / "qwen3-8b.toml").read_text(encoding="utf-8")
    other = tmp_path / "qwen3-8b.toml"
    other.write_text(shipped.replace('hub = "Qwen/Qwen3-8B"', 'path = "tuned"'), encoding="utf-8")
    plan = make(simulator={"model": "qwen3-8b"}, chatbot={"model": str(other)}, judge=[{"model": str(other)}])
    needs = [n for of_one in needs_of(plan, simulate=True, judge=True).values() for n in of_one]
    assert [(n.name, n.stage) for n in needs] == [
        ("qwen3-8b", "talk"),
        ("qwen3-8b (2)", "talk"),
        ("qwen3-8b (2)", "judge:qwen3-8b (2)"),
    ]


def test_transformers_has_one_engine_that_never_sleeps(make: MakePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu(monkeypatch, 80)
    here, there = (make(engine=engine, replicas=3) for engine in ("vllm", "transformers"))
    ours, theirs = (next(iter(needs_of(p, simulate=True, judge=False).values()))[0] for p in (here, there))
    assert (ours.replicas, ours.can_sleep) == (3, True)
    assert (theirs.replicas, theirs.can_sleep, theirs.kv_bytes) == (1, False, None)


def test_conversations_are_reckoned_by_what_their_sides_may_write(make: MakePlan) -> None:
    """Embedded: 60 tokens of the persona and 300 of the chatbot at most; half of that, over 10 pairs of messages."""
    one, many = make(personas=1, turns=20), make(personas=50, turns=20)
    wanted = [next(iter(needs_of(p, simulate=True, judge=False).values()))[0].kv_tokens_wanted for p in (one, many)]
    assert wanted == [PROMPT + 1800, WIDTH * (PROMPT + 1800)]


async def test_the_choice_is_printed_and_recorded(
    make: MakePlan, answering: Callable[..., Any], watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(watcher, "say", said.append)
    plan = make(judge=[{"model": "qwen3-8b"}], personas=1, turns=2)
    await run(plan, answering(answer), watcher)
    residency = _residency(plan)
    assert residency["choice"] == "together" and residency["reason"] in said
    assert set(residency["places"]) == {"smollm2-135m-instruct", "qwen3-8b"}
    assert residency["places"]["smollm2-135m-instruct"] == [{"gpus": [], "kv_bytes": 2**30, "sleeps": False}]
    # With nothing left to do nothing is opened, and the record stays.
    await run(plan, answering(answer), watcher)
    assert _residency(plan) == residency


async def test_a_later_start_that_needs_other_engines_is_recorded_and_the_run_is_the_same(
    make: MakePlan, answering: Callable[..., Any], watcher: Watcher
) -> None:
    plan = make(judge=[{"model": "qwen3-8b"}], personas=1, turns=2)
    await run(plan, answering(answer), watcher, judge=False)
    assert set(_residency(plan)["places"]) == {"smollm2-135m-instruct"}
    identity = (read(plan.out) or {})["identity"]
    await run(plan, answering(answer), watcher)
    assert set(_residency(plan)["places"]) == {"qwen3-8b"}
    assert (read(plan.out) or {})["identity"] == identity


async def test_what_cannot_work_here_is_told_before_anything_is_written(
    make: MakePlan, answering: Callable[..., Any], watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_gpu(monkeypatch, 24)
    opened, plan = answering(answer), make(judge=[{"model": "qwen3-32b"}])
    with pytest.raises(UserError, match=r"qwen3-32b needs .* and this machine has H of 24"):
        await run(plan, opened, watcher)
    assert not opened.engines and not plan.out.exists()
    # The conversations can be held all the same.
    await run(make(judge=[{"model": "qwen3-32b"}], personas=1, turns=2), opened, watcher, judge=False)


def answer(request: Request) -> str:
    """A message, or the first option."""
    if request.pattern is None:
        return "hello"
    return request.pattern.strip("()$").split("|")[0].replace("\\", "")


def _residency(plan: Plan) -> dict[str, Any]:
    residency = (read(plan.out) or {})["residency"]
    assert isinstance(residency, dict)
    return residency


async def test_a_run_with_one_engine_says_nothing_of_it(
    make: MakePlan, answering: Callable[..., Any], watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(watcher, "say", said.append)
    plan = make(personas=1, turns=2)
    await run(plan, answering(lambda request: "hello"), watcher, judge=False)
    assert (read(plan.out) or {})["residency"]["reason"] == "smollm2-135m-instruct is the only model hosted here."
    assert not any("only model" in line for line in said)
