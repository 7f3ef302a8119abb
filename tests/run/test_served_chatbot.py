"""A small evaluation of a chatbot behind vLLM's own server, on loopback and on CPU."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.run.held import held
from vera_local.conversation import Ending, Speaker
from vera_local.engine.profile import find_profile
from vera_local.engine.seam import Request
from vera_local.engine.source import locate
from vera_local.errors import UserError
from vera_local.run import Plan, Watcher, run

pytestmark = pytest.mark.vllm

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
MODEL = "smollm2-135m-instruct"
KEY = "key-of-the-server-itself"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of `vllm serve` with the embedded model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    profile = find_profile(MODEL)
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(locate(profile)),
        "--served-model-name", MODEL, "--host", "127.0.0.1", "--port", str(port), "--max-model-len", "2048",
        "--api-key", KEY,
    ]  # fmt: skip
    log = tmp_path_factory.mktemp("server") / "log"
    environment = os.environ | {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    with log.open("wb") as written:
        process = subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT, env=environment)
    try:
        _wait(process, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(timeout=60)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
        try:
            if httpx.get(url).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    raise AssertionError(log.read_text(errors="replace")[-3000:])


def at_random(request: Request) -> str:
    """What a model would do, from the request's own seed alone."""
    return f"message {random.Random(request.sampling.seed).random()}"


def table(server: str, **more: Any) -> dict[str, Any]:
    return {"kind": "openai", "model": MODEL, "url": server, "key_env": "SERVER_KEY", **more}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chatbot_behind_vllms_server(
    server: str, make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path, stream: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("SERVER_KEY", KEY)
    said = []
    for name in ("one", "two"):
        chatbot = table(server, max_tokens=24, stream=stream)
        plan = make(personas=2, out=tmp_path / name, chatbot=chatbot)
        outcome = await run(plan, answering(at_random), watcher, judge=False)
        assert [(c.ending, c.turns) for c in outcome.conversations] == [(Ending.TURNS, 4)] * 2
        said.append([m.text for c in held(outcome) for m in c.messages if m.speaker is Speaker.CHATBOT])
    assert all(said[0])
    assert said[0] == said[1], "its requests carry their seeds"
    assert not any(KEY.encode() in file.read_bytes() for file in (tmp_path / "one").rglob("*") if file.is_file())


async def test_a_history_that_is_too_long_ends_as_one(
    server: str, make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_KEY", KEY)
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Listen well. " * 2000)
    plan = make(personas=2, chatbot=table(server, system_prompt=str(prompt)))
    outcome = await run(plan, answering(at_random), watcher, judge=False)
    assert {c.ending for c in outcome.conversations} == {Ending.OVERFLOW}


async def test_the_shorthand_asks_it_too(server: str, make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make(personas=2, chatbot=f"{MODEL}@{server}")
    with pytest.raises(UserError, match=r"refuses access \(status 401\)"):
        await run(plan, answering(at_random), watcher, judge=False)
