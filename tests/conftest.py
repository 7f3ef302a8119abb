"""Models for tests: the embedded one on the real vLLM engine, started once, and a tiny random one."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from vera_local.engine.vllm import VllmEngine

EMBEDDED = "smollm2-135m-instruct"


def pytest_configure() -> None:
    """Tests stop commands with SIGINT, which a process is born deaf to where tests are started in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def vllm_engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[VllmEngine]:
    """Tests that use it run in the session's event loop, to which vLLM's output belongs."""
    from vera_local.engine.profile import find_profile
    from vera_local.engine.source import locate
    from vera_local.engine.vllm import VllmEngine

    profile = find_profile(EMBEDDED)
    log: Path = tmp_path_factory.mktemp("vllm") / "engine.log"
    engine = VllmEngine.open(profile, locate(profile), log)
    yield engine
    await engine.aclose()


@pytest.fixture(scope="session")
def vllm_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of vLLM's server on loopback, which hosts the embedded model until the session ends."""
    from tests.vllm_server import served

    with served(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture(scope="session")
def tiny_model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny random chat model with a thinking switch."""
    from tests.tiny import make_tiny_model

    return make_tiny_model(tmp_path_factory.mktemp("tiny"))
