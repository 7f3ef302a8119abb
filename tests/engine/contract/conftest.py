"""The engines that have to keep the contract, each by a fixture of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from tests.conftest import EMBEDDED
from tests.engine.contract.subject import Subject
from tests.engine.contract.toy import END, Toy
from vera_local.engine.child import HOST_VARIABLE
from vera_local.engine.hf import TransformersEngine
from vera_local.engine.openai import OpenAIEngine
from vera_local.engine.profile import Profile, find_profile
from vera_local.engine.server import Address
from vera_local.engine.sockets import make_sockets_folder
from vera_local.engine.vllm import CPU_BLOCK, VllmEngine

CONTROL = "<|im_end|>"
"""Ends the answers of the embedded model, and of the tiny one."""

PATIENCE = 300
"""Seconds after which a server that does not answer counts as broken."""

ENGINES = [
    "fake",
    "transformers",
    pytest.param("vllm", marks=pytest.mark.vllm),
    pytest.param("server", marks=pytest.mark.vllm),
]


@pytest.fixture(params=ENGINES)
def subject(request: pytest.FixtureRequest) -> Subject:
    """One engine after the other; `NAME_subject` is the fixture of engine NAME."""
    found: Subject = request.getfixturevalue(f"{request.param}_subject")
    return found


@pytest.fixture
def fake_subject() -> Subject:
    return Subject(Toy().engine, END)


@pytest.fixture
def transformers_subject(tiny_engine: TransformersEngine) -> Subject:
    return Subject(tiny_engine, CONTROL)


@pytest.fixture
def vllm_subject(vllm_engine: VllmEngine) -> Subject:
    return Subject(vllm_engine, CONTROL)


@pytest.fixture
def server_subject(openai_engine: OpenAIEngine) -> Subject:
    return Subject(openai_engine, CONTROL)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def openai_engine(vllm_server: str) -> AsyncIterator[OpenAIEngine]:
    """The embedded model behind vLLM's own server."""
    profile = find_profile(EMBEDDED)
    template = profile.template.model_copy(update={"markers": (CONTROL,)})
    engine = await OpenAIEngine.open(profile.model_copy(update={"template": template}), Address(vllm_server))
    yield engine
    await engine.aclose()


@pytest.fixture(scope="session")
def vllm_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of vLLM's server on loopback, which hosts the embedded model until the session ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "server.log"
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

    profile: Profile = find_profile(EMBEDDED)
    arguments = {
        "model": str(locate(profile)),
        "served-model-name": profile.name,
        "host": "127.0.0.1",
        "port": str(port),
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
