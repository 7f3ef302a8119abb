"""The transformers engine on a tiny random model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from vera_local.engine.hf import TransformersEngine
from vera_local.engine.profile import find_profile


@pytest.fixture(scope="session")
def tiny_engine(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransformersEngine]:
    """Opened once; it belongs to no event loop."""
    # Threads that wait for each other take longer than these few numbers.
    torch.set_num_threads(1)
    log = tmp_path_factory.mktemp("log") / "engine.log"
    engine = TransformersEngine.open(find_profile(str(tiny_model_folder)), tiny_model_folder, log)
    yield engine
    asyncio.run(engine.aclose())
