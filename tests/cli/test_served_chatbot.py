"""A small evaluation of a chatbot behind vLLM's own server, on loopback and on CPU."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from vera_local.engine.profile import find_profile
from vera_local.engine.source import locate

pytestmark = pytest.mark.vllm

Command = Callable[..., int]
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


@pytest.mark.parametrize("stream", [False, True])
def test_a_chatbot_behind_vllms_server(
    command: Command, server: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], stream: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("SERVER_KEY", KEY)
    file = tmp_path / "bot.toml"
    keys = f'kind = "openai"\nmodel = "{MODEL}"\nurl = "{server}"\nkey_env = "SERVER_KEY"\nmax_tokens = 24\n'
    file.write_text(f"{keys}stream = {str(stream).lower()}\n")
    small = ("--personas", "2", "--turns", "4")
    for name in ("one", "two"):
        assert command("run", *small, "--chatbot", file, "--out", tmp_path / name, "--json") == 0
        told = json.loads(capfd.readouterr().out)
        assert told["endings"] == {"turns": 2}
        assert told["chatbot_messages"]["all"] == 4
    said = [(tmp_path / name / "conversations.jsonl").read_bytes() for name in ("one", "two")]
    assert said[0] == said[1], "its requests carry their seeds"
    assert not any(KEY.encode() in file.read_bytes() for file in (tmp_path / "one").rglob("*"))


def test_a_history_that_is_too_long_ends_as_one(
    command: Command, server: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_KEY", KEY)
    file, prompt = tmp_path / "bot.toml", tmp_path / "prompt.txt"
    prompt.write_text("Listen well. " * 2000)
    keys = f'model = "{MODEL}"\nurl = "{server}"\nkey_env = "SERVER_KEY"\nsystem_prompt = "{prompt}"\n'
    file.write_text(f'kind = "openai"\n{keys}')
    told = ("--personas", "2", "--turns", "4", "--chatbot", file, "--out", tmp_path / "run", "--json")
    assert command("simulate", *told) == 1
    assert json.loads(capfd.readouterr().out)["endings"] == {"overflow": 2}
