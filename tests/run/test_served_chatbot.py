"""A small evaluation of a chatbot behind vLLM's own server, on loopback and on CPU."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.run.held import held
from tests.vllm_server import KEY, MODEL
from vera_local.conversation import Ending, Speaker
from vera_local.engine.seam import Request
from vera_local.errors import UserError
from vera_local.run import Plan, Watcher, run

pytestmark = pytest.mark.vllm

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]


def at_random(request: Request) -> str:
    """What a model would do, from the request's own seed alone."""
    return f"message {random.Random(request.sampling.seed).random()}"


def table(url: str, **more: Any) -> dict[str, Any]:
    return {"kind": "openai", "model": MODEL, "url": url, "key_env": "SERVER_KEY", **more}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chatbot_behind_vllms_server(
    vllm_url: str, make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path, stream: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("SERVER_KEY", KEY)
    said = []
    for name in ("one", "two"):
        chatbot = table(vllm_url, max_tokens=24, stream=stream)
        plan = make(personas=2, out=tmp_path / name, chatbot=chatbot)
        outcome = await run(plan, answering(at_random), watcher, judge=False)
        assert [(c.ending, c.turns) for c in outcome.conversations] == [(Ending.TURNS, 4)] * 2
        said.append([m.text for c in held(outcome) for m in c.messages if m.speaker is Speaker.CHATBOT])
    assert all(said[0])
    assert said[0] == said[1], "its requests carry their seeds"
    assert not any(KEY.encode() in file.read_bytes() for file in (tmp_path / "one").rglob("*") if file.is_file())


async def test_a_history_that_is_too_long_ends_as_one(
    vllm_url: str,
    make: MakePlan,
    answering: Answering,
    watcher: Watcher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SERVER_KEY", KEY)
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Listen well. " * 4000)
    plan = make(personas=2, chatbot=table(vllm_url, system_prompt=str(prompt)))
    outcome = await run(plan, answering(at_random), watcher, judge=False)
    assert {c.ending for c in outcome.conversations} == {Ending.OVERFLOW}


async def test_the_shorthand_asks_it_too(vllm_url: str, make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make(personas=2, chatbot=f"{MODEL}@{vllm_url}")
    with pytest.raises(UserError, match=r"refuses access \(status 401\)"):
        await run(plan, answering(at_random), watcher, judge=False)
