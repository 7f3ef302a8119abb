"""What vLLM writes where memory is short becomes a sentence that names the remedy; the texts are vLLM's own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from vera_local.engine.seam import ChatMessage, EngineError, EngineLost, Limits, Request, Sampling
from vera_local.engine.shortage import MOST, Written, shortage
from vera_local.engine.vllm import VllmEngine, not_started

LOG = Path("run/engine.log")

TEXTS = {
    "ValueError: Free memory on device cuda:0 (3.1/79.2 GiB) on startup is less than desired GPU memory utilization "
    "(0.9, 71.3 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.": "end them",
    "ValueError: Available memory on node 0 (1.2/15.6 GiB) on startup is less than desired CPU memory utilization "
    "(0.9, 14.0 GiB). On the CPU backend, the": "end them",
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing "
    "the engine": "set a smaller max_num_seqs or a larger gpu_memory_utilization",
    "ValueError: To serve at least one request with the model's max seq len (8192), (1.0 GiB KV cache is needed, which "
    "is larger than the available KV cache memory (0.5 GiB). Based on the": "set a smaller context",
    "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization": "smaller or quantised model",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.": "set a smaller context, max_num_seqs",
    "RuntimeError: [enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you "
    "tried to allocate 99 bytes.": "set a smaller context, max_num_seqs",
}


@pytest.mark.parametrize("text", TEXTS)
def test_each_shortage_names_its_remedy(text: str) -> None:
    error = RuntimeError("Engine core initialization failed. See root cause above. Failed core proc(s): {}")
    told = str(not_started("own", error, f"(EngineCore pid=1) ERROR [core.py:1] {text}\n", LOG))
    assert told.startswith("own: vLLM could not start, since ") and TEXTS[text] in told and str(LOG) in told


def test_any_other_failure_is_told_by_its_first_line() -> None:
    error = ValueError("no such quantization\nand more")
    assert str(not_started("own", error, "some words", LOG)) == (
        f"own: vLLM could not start (no such quantization); the whole reason is in {LOG}"
    )
    assert shortage("all is well") is None


@pytest.mark.vllm
def test_the_texts_are_those_of_the_vllm_that_is_installed() -> None:
    from vllm.v1.core.kv_cache_utils import _check_enough_kv_cache_memory
    from vllm.v1.worker.utils import request_memory

    little = SimpleNamespace(total_memory=10, free_memory=1, device_="cuda:0")
    calls: dict[str, Callable[[], object]] = {
        "the weights leave no memory": lambda: _check_enough_kv_cache_memory(0, lambda: 1, 1, lambda _: 1),
        "not even one conversation": lambda: _check_enough_kv_cache_memory(1, lambda: 2, 1, lambda _: 1),
        "other programs hold": lambda: request_memory(little, SimpleNamespace(gpu_memory_utilization=0.9)),
    }
    for meaning, call in calls.items():
        with pytest.raises(ValueError) as raised:
            call()
        assert meaning in (shortage(str(raised.value)) or "")


def test_only_what_is_written_from_now_on_counts(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    assert Written(log).text() == ""
    log.write_text("CUDA out of memory")
    later = Written(log)
    with log.open("a") as more:
        more.write("fine")
    assert later.text() == "fine"
    log.write_text("x" * (2 * MOST) + "end")
    assert later.text() == "x" * (MOST - 3) + "end"


class Failing:
    """As much of AsyncLLM as a request takes that gets no reply."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def generate(self, *given: object) -> AsyncIterator[object]:
        for error in (self._error,):
            raise error
            yield None


def engine_that_fails(log: Path, error: Exception) -> VllmEngine:
    engine = object.__new__(VllmEngine)
    template = SimpleNamespace(ids=lambda messages, thinking: [1], control=lambda stop: None)
    parts = {"_llm": Failing(error), "_log": log, "_written": Written(log), "_template": template}
    vars(engine).update(parts, _ids=itertools.count(), _limits=Limits(99, None, 1))
    return engine


REQUEST = Request((ChatMessage("user", "hello"),), Sampling(0, 1, 5, 0))


@pytest.mark.vllm
async def test_an_engine_that_ends_at_work_says_why_where_its_log_does(tmp_path: Path) -> None:
    from vllm.v1.engine.exceptions import EngineDeadError

    log = tmp_path / "engine.log"
    engine = engine_that_fails(log, EngineDeadError())
    with pytest.raises(EngineLost, match=r"process ended \(see .*engine.log\)"):
        await engine.generate(REQUEST)
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.")
    with pytest.raises(EngineLost, match="ended since memory ran out: set a smaller context"):
        await engine.generate(REQUEST)


@pytest.mark.vllm
async def test_a_request_that_vllm_stumbles_over_fails_alone(tmp_path: Path) -> None:
    from vllm.v1.engine.exceptions import EngineGenerateError

    error = EngineGenerateError()
    error.__cause__ = KeyError("what")
    with pytest.raises(EngineError, match=r"vLLM gave no reply .*what") as caught:
        await engine_that_fails(tmp_path / "log", error).generate(REQUEST)
    assert not isinstance(caught.value, EngineLost)
