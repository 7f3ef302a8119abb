"""The engines that have to keep the contract, each by a fixture of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.conftest import EMBEDDED
from tests.engine.contract.subject import Subject
from tests.engine.contract.toy import END, Toy
from tests.vllm_server import KEY
from vera_local.engine.hf import TransformersEngine
from vera_local.engine.openai import OpenAIEngine
from vera_local.engine.profile import find_profile
from vera_local.engine.server import Address
from vera_local.engine.vllm import VllmEngine

CONTROL = "<|im_end|>"
"""Ends the answers of the embedded model, and of the tiny one."""

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
async def openai_engine(vllm_url: str) -> AsyncIterator[OpenAIEngine]:
    """The embedded model behind vLLM's own server."""
    profile = find_profile(EMBEDDED)
    template = profile.template.model_copy(update={"markers": (CONTROL,)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SERVER_KEY", KEY)
        engine = await OpenAIEngine.open(
            profile.model_copy(update={"template": template}), Address(vllm_url), "SERVER_KEY"
        )
    yield engine
    await engine.aclose()
