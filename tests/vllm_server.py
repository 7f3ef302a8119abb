"""vLLM's own server with the embedded model, on loopback and on CPU, behind a key. Knows no test."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from vera_local.engine.child import HOST_VARIABLE
from vera_local.engine.profile import find_profile
from vera_local.engine.sockets import make_sockets_folder

MODEL = "smollm2-135m-instruct"
KEY = "key-of-the-server-itself"

PATIENCE = 300
"""Seconds after which a server that does not answer counts as broken."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The base URL of a server that ends with the block; what it prints goes into a file in `folder`."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = folder / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(_command(port), env=_environment(), stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait(process, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def _command(port: int) -> list[str]:
    from vera_local.engine.source import locate
    from vera_local.engine.vllm import CPU_BLOCK

    profile = find_profile(MODEL)
    arguments = {
        "model": str(locate(profile)),
        "served-model-name": profile.name,
        "host": "127.0.0.1",
        "port": str(port),
        "api-key": KEY,
        "dtype": "float32",
        "max-model-len": str(profile.context),
        "max-num-batched-tokens": str(profile.context),
        "block-size": str(CPU_BLOCK),
        "kv-cache-memory-bytes": str(2**30),
        "structured-outputs-config": '{"backend": "outlines"}',
        "generation-config": "vllm",
    }
    listed = [part for name, value in arguments.items() for part in (f"--{name}", value)]
    switches = ["--enforce-eager", "--no-enable-chunked-prefill", "--enable-prompt-tokens-details"]
    return [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *listed, *switches]


def _environment() -> dict[str, str]:
    """Offline, and tied to this process: its own processes die with it."""
    offline = dict.fromkeys(("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK"), "1")
    own = {
        HOST_VARIABLE: str(os.getpid()),
        "VLLM_RPC_BASE_PATH": str(make_sockets_folder()),
        "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
    }
    return os.environ | offline | own


def _wait(process: subprocess.Popen[bytes], health: str, log: Path) -> None:
    for _ in range(PATIENCE):
        assert process.poll() is None, log.read_text(encoding="utf-8")[-3000:]
        try:
            if httpx.get(health, trust_env=False).status_code == 200:
                return
        except httpx.RequestError:
            time.sleep(1)
    pytest.fail(f"vLLM's server does not answer: {log.read_text(encoding='utf-8')[-3000:]}")
