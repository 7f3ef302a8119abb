"""Each probe of `doctor` is a line, in a good state and in a bad one with its remedy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.answers import at_random
from vera_local.engine.fake import FakeEngine, Handler
from vera_local.engine.profile import find_profile
from vera_local.engine.seam import Engine, Finish, InvalidRequest, Limits, Reply, Request, Usage
from vera_local.run import Opener, Opening

Command = Callable[..., int]
Examine = Callable[..., dict[str, tuple[bool, str]]]
NAME = "smollm2-135m-instruct"
THINKER = "qwen3-8b"


@pytest.fixture
def examine(command: Command, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Examine:
    """Run `doctor` on engines with this handler; check -> whether it is well, and what is told."""
    monkeypatch.setattr("vera_local.cli.doctor.locate", lambda profile: Path("/model"))

    def look(handler: Handler, *arguments: str, limits: Limits | None = None) -> dict[str, tuple[bool, str]]:
        def fake(log: Path) -> Opener:
            async def open_engine(opening: Opening) -> Engine:
                return FakeEngine(handler, limits)

            return open_engine

        monkeypatch.setattr("vera_local.cli.doctor.opener", fake)
        code = command("doctor", *arguments, "--json")
        findings = json.loads(capfd.readouterr().out)
        assert code == (0 if all(f["ok"] for f in findings) else 1)
        return {f["check"]: (f["ok"], f["told"]) for f in findings}

    return look


def thinking(request: Request) -> str:
    return "Hm. </think> Paris" if request.thinking else at_random(request)


def refusing(*roles: str) -> Handler:
    def handle(request: Request) -> str:
        if [m.role for m in request.messages] == list(roles):
            raise InvalidRequest("not with me")
        return at_random(request)

    return handle


def test_all_is_well_with_a_good_engine(examine: Examine) -> None:
    found = examine(at_random)
    assert all(ok for ok, _ in found.values())
    checks = ("engine", "template", "history", "constraint", "probabilities", "context")
    assert {f"{NAME} {check}" for check in checks} <= found.keys()
    assert "a conversation of 6 messages takes" in found[f"{NAME} context"][1]


def test_a_model_that_can_reason_is_tried_for_it(examine: Examine) -> None:
    found = examine(thinking, "--judge", THINKER, "--judge-mode", "think")
    assert found[f"{THINKER} reasoning"] == (True, "the model answers without reasoning first")
    assert found[f"{THINKER}:think thinking"] == (True, "reasoning ended with </think> after 2 tokens")
    assert f"{THINKER} thinking" not in examine(thinking, "--judge", THINKER)


@pytest.mark.parametrize(
    ("handler", "check", "told"),
    [
        (refusing("system", "user"), "template", "set template.system_role = false"),
        (refusing("system", "user", "assistant", "user"), "history", "repair the template"),
        (lambda r: "Paris", "constraint", "use vLLM 0.31 or later"),
    ],
)
def test_a_failing_probe_is_a_line_with_its_remedy(examine: Examine, handler: Handler, check: str, told: str) -> None:
    found = examine(handler)
    ok, words = found[f"{NAME} {check}"]
    assert not ok and told in words


def test_reasoning_that_cannot_be_held_or_does_not_end_is_told(examine: Examine) -> None:
    found = examine(lambda r: "Hm. </think> Paris" if r.stop else at_random(r), "--judge", THINKER)
    assert not found[f"{THINKER} reasoning"][0]
    assert "template.thinking_switch" in found[f"{THINKER} reasoning"][1]
    endless = examine(
        lambda r: Reply("Hm", Finish.LENGTH, Usage()) if r.thinking else at_random(r),
        "--judge", THINKER, "--judge-mode", "think",
    )  # fmt: skip
    ok, words = endless[f"{THINKER}:think thinking"]
    budget = find_profile(THINKER).roles.judge.max_tokens
    assert not ok and f"did not end within {budget} tokens" in words


def test_probabilities_are_no_need(examine: Examine) -> None:
    def blind(request: Request) -> str:
        if request.labels:
            raise InvalidRequest("no label reads")
        return at_random(request)

    ok, words = examine(blind)[f"{NAME} probabilities"]
    assert ok and "verdicts have no confidence" in words


def test_a_context_that_is_too_small_is_told_with_the_remedies(examine: Examine) -> None:
    small = Limits(context=2000, kv_tokens=None, sequences=4)
    ok, words = examine(at_random, "--turns", "20", limits=small)[f"{NAME} context"]
    assert not ok
    assert "a conversation of 20 messages can take" in words
    assert "--judge-window" in words and "--turns" in words
