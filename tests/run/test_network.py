"""What a run may reach, what becomes of attempts beyond it, and what its manifest says of both."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.answers import at_random
from vera_local.engine.attempts import Verdict, note, write
from vera_local.engine.seam import EngineDied, EngineError, Request
from vera_local.errors import UserError
from vera_local.run import Plan, Watcher, run
from vera_local.run.network import LOG, WentBeyond, hosts_of, judge, network_line

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
HTTP = {"kind": "http", "url": "https://Chat.Lab.example/say", "request": {"m": "{message}"}, "reply": "text"}


def beyond(plan: Plan, verdict: Verdict) -> Callable[[Request], str]:
    """An engine one of whose processes tries to reach something, as its guard notes it."""
    tried: list[bool] = []

    def handle(request: Request) -> str:
        if not tried:
            tried.append(write(plan.out / LOG, [note("connect", "192.0.2.7:80", verdict, None)]))
        return at_random(request)

    return handle


def noted(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((plan.out / "manifest.json").read_text())["network"]
    return found


def test_the_hosts_are_those_that_the_config_names(make: MakePlan) -> None:
    assert hosts_of(make()) == ()
    served = make(simulator="m@http://gpu1.lab:8000/v1", judge=["a@http://10.0.0.3/v1", "b@http://gpu1.lab:9/v1"])
    assert hosts_of(served) == ("gpu1.lab", "10.0.0.3")
    assert hosts_of(make(judge=["m@http://gpu1.lab/v1,http://gpu2.lab/v1"])) == ("gpu1.lab", "gpu2.lab")
    assert hosts_of(make(chatbot="m@http://[::1]:8000/v1")) == ("::1",)
    start = {"url": "https://login.lab.example/begin"}
    assert hosts_of(make(chatbot=HTTP | {"start": start})) == ("chat.lab.example", "login.lab.example")
    own = {"kind": "python", "factory": "ours:make", "hosts": ["model.lab.example"]}
    assert hosts_of(make(chatbot=own)) == ("model.lab.example",)


def test_the_user_is_told_what_can_be_reached(make: MakePlan) -> None:
    assert network_line(make()) == "this machine; anything beyond is refused"
    named = network_line(make(chatbot=HTTP, guard="log"))
    assert named == "this machine and chat.lab.example; anything beyond is let through and noted in network.log"


async def test_a_quiet_run_has_no_log_and_says_so(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make(personas=1, turns=2)
    await run(plan, answering(at_random), watcher)
    assert noted(plan) == {"guard": "off", "hosts": [], "attempts": {"refused": 0, "let through": 0}}
    assert not (plan.out / LOG).exists()


async def test_a_refused_attempt_of_any_process_fails_the_run_once(
    make: MakePlan, answering: Answering, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(watcher, "say", said.append)
    plan = make(personas=1, turns=2)
    with pytest.raises(WentBeyond, match=r"1 attempt to reach .* 192\.0\.2\.7:80 in .*network\.log") as failed:
        await run(plan, answering(beyond(plan, "refused")), watcher)
    assert isinstance(failed.value, EngineError)
    assert noted(plan)["attempts"] == {"refused": 1, "let through": 0}
    assert not (plan.out / "scores.json").exists()
    again = answering(at_random)
    outcome = await run(plan, again, watcher)
    assert outcome.scores
    assert again.requests == [], "all that was finished is kept"
    assert noted(plan)["attempts"] == {"refused": 1, "let through": 0}
    assert any("1 attempt beyond this machine in earlier starts of this run" in line for line in said)
    await run(plan, answering(at_random), watcher)
    assert noted(plan)["attempts"] == {"refused": 1, "let through": 0}


@pytest.mark.parametrize("failure", [EngineDied("it did not start"), UserError("no room; make some")])
async def test_where_an_engine_fails_after_a_refusal_the_attempt_is_told_beside_the_failure(
    make: MakePlan, answering: Answering, watcher: Watcher, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    said: list[str] = []
    monkeypatch.setattr(watcher, "say", said.append)
    plan = make(personas=1, turns=2)

    def fail(request: Request) -> str:
        beyond(plan, "refused")(request)
        raise failure

    with pytest.raises(type(failure), match=str(failure)):
        await run(plan, answering(fail), watcher)
    told = f"such as {note('connect', '192.0.2.7:80', 'refused', None).told()}; {plan.out / LOG} has each"
    assert [told in line for line in said if line.startswith("Network: ")] == [True]


async def test_attempts_of_a_start_that_was_killed_are_counted_by_the_next(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make(personas=1, turns=2)
    await run(plan, answering(at_random), watcher)
    write(plan.out / LOG, [note("connect", "192.0.2.7:80", "refused", None)])
    await run(plan, answering(at_random), watcher)
    assert noted(plan)["attempts"] == {"refused": 1, "let through": 0}
    (plan.out / LOG).unlink()
    await run(plan, answering(at_random), watcher)
    assert noted(plan)["attempts"] == {"refused": 1, "let through": 0}


async def test_an_attempt_that_was_let_through_is_told_and_counted(
    make: MakePlan, answering: Answering, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(watcher, "say", said.append)
    plan = make(personas=1, turns=2, guard="log")
    outcome = await run(plan, answering(beyond(plan, "let through")), watcher)
    assert outcome.scores
    assert any("1 attempt beyond this machine, let through as asked" in line for line in said)
    assert noted(plan)["attempts"] == {"refused": 0, "let through": 1}


def test_ray_asking_for_its_cloud_is_refused_and_told_and_no_reason_to_fail(tmp_path: Path) -> None:
    said: list[str] = []
    asked = note("connect", "169.254.169.254:80", "refused", None)
    asked = replace(
        asked, stack=("/v/ray/_common/usage/usage_lib.py:718 cloud_metadata_request", "/v/guard.py:1 method")
    )
    judge((asked, asked), tmp_path / LOG, said.append)
    assert said == [f"Network: 2 attempts of Ray to learn which cloud it is in, refused; see {tmp_path / LOG}."]
    with pytest.raises(WentBeyond, match=r"2 attempts .* such as connect 192\.0\.2\.7:80"):
        judge((asked, note("connect", "192.0.2.7:80", "refused", None)), tmp_path / LOG, said.append)


async def test_the_guard_is_no_part_of_what_a_run_is(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make(personas=1, turns=2)
    await run(plan, answering(at_random), watcher)
    before = json.loads((plan.out / "manifest.json").read_text())["fingerprint"]
    await run(make(personas=1, turns=2, guard="log"), answering(at_random), watcher)
    assert json.loads((plan.out / "manifest.json").read_text())["fingerprint"] == before
    assert make(out=None, guard="log").out == make(out=None).out == Path(make(out=None).out)
