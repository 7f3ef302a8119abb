from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vera_local
from vera_local.engine.machine import VISIBLE, Machine
from vera_local.engine.placement import ANYWHERE, Place
from vera_local.engine.profile import EngineOptions, Profile, find_profile, list_profiles
from vera_local.engine.seam import EngineDied
from vera_local.engine.surroundings import on_gpus, output_to
from vera_local.engine.vllm import CPU_BLOCK, CPU_RIDGE, UNKNOWN_RIDGE, VllmEngine, _arguments, _ridge

ROOT = Path(vera_local.__file__).parents[1]
FOLDER = Path("/models/own")


def profile(**options: Any) -> Profile:
    shipped = find_profile("qwen3-8b")
    return shipped.model_copy(update={"engine": EngineOptions(dtype="bfloat16", **options)})


@pytest.mark.parametrize("on_cpu", [False, True])
def test_every_engine_caches_prefixes_and_constrains_with_outlines(on_cpu: bool) -> None:
    for shipped in list_profiles():
        arguments = _arguments(shipped, FOLDER, ANYWHERE, on_cpu)
        assert arguments["model"] == str(FOLDER)
        assert arguments["max_model_len"] == shipped.context
        assert arguments["enable_prefix_caching"] is True
        assert arguments["structured_outputs_config"] == {"backend": "outlines"}
        assert arguments["generation_config"] == "vllm"
        assert arguments["enable_log_requests"] is False, "they hold transcripts"
        assert arguments.items() >= shipped.engine_arguments().items()


def test_what_a_cpu_needs_is_left_alone_on_a_gpu() -> None:
    on_gpu, on_cpu = (_arguments(profile(), FOLDER, ANYWHERE, cpu) for cpu in (False, True))
    added = {name: value for name, value in on_cpu.items() if name not in on_gpu}
    assert added == {
        "block_size": CPU_BLOCK,
        "enable_chunked_prefill": False,
        "max_num_batched_tokens": profile().context,
    }
    assert {name: on_cpu[name] for name in on_gpu} == on_gpu


def test_the_profile_s_own_arguments_win_on_a_cpu_too() -> None:
    arguments = _arguments(profile(block_size=64, max_num_batched_tokens=99_999), FOLDER, ANYWHERE, on_cpu=True)
    assert (arguments["block_size"], arguments["max_num_batched_tokens"]) == (64, 99_999)


def test_alone_an_engine_fills_what_its_profile_says() -> None:
    assert "gpu_memory_utilization" not in _arguments(profile(), FOLDER, ANYWHERE, on_cpu=False)
    own = _arguments(profile(gpu_memory_utilization=0.95), FOLDER, ANYWHERE, on_cpu=False)
    assert own["gpu_memory_utilization"] == 0.95


@pytest.mark.parametrize(
    ("tensor_parallel", "gpus", "part"),
    [(None, (0,), 0.214), (2, (0, 1), 0.132)],
)
def test_beside_others_an_engine_takes_the_kv_cache_that_its_place_has(
    monkeypatch: pytest.MonkeyPatch, tensor_parallel: int | None, gpus: tuple[int, ...], part: float
) -> None:
    """Its share of a GPU is no more than a check that this is free: vLLM refuses to start where it is not."""
    monkeypatch.setattr("vera_local.engine.vllm.this_machine", lambda: Machine("cuda", "H", 100_000_000_000, 2))
    shipped = profile(gpu_memory_utilization=0.95, tensor_parallel_size=tensor_parallel)
    arguments = _arguments(shipped, FOLDER, Place(gpus, 5_000_000_000), on_cpu=False)
    assert arguments["kv_cache_memory_bytes"] == 5_000_000_000
    assert arguments["gpu_memory_utilization"] == pytest.approx(part, abs=0.001)
    assert "enable_sleep_mode" not in arguments


def test_on_a_cpu_the_place_gives_the_kv_cache_and_no_share() -> None:
    arguments = _arguments(profile(), FOLDER, Place((), 5_000_000_000), on_cpu=True)
    assert arguments["kv_cache_memory_bytes"] == 5_000_000_000
    assert "gpu_memory_utilization" not in arguments


def test_an_engine_that_will_be_put_to_sleep_is_started_so() -> None:
    assert _arguments(profile(), FOLDER, Place((0,), 1, sleeps=True), on_cpu=False)["enable_sleep_mode"] is True


@pytest.mark.parametrize(
    ("before", "numbers", "meanwhile"),
    [
        (None, (), None),
        (None, (2, 3), "2,3"),
        ("4,5,6,7", (), "4,5,6,7"),
        ("4,5,6,7", (2, 3), "6,7"),
        ("GPU-aa, GPU-bb", (1,), "GPU-bb"),
        ("MIG-aa", (0,), "MIG-aa"),
    ],
)
def test_an_engine_sees_its_gpus_alone_while_it_starts(
    monkeypatch: pytest.MonkeyPatch, before: str | None, numbers: tuple[int, ...], meanwhile: str | None
) -> None:
    monkeypatch.delenv(VISIBLE, raising=False)
    if before is not None:
        monkeypatch.setenv(VISIBLE, before)
    with pytest.raises(RuntimeError), on_gpus(numbers):
        assert os.environ.get(VISIBLE) == meanwhile
        raise RuntimeError("no start")
    assert os.environ.get(VISIBLE) == before


@pytest.mark.parametrize(
    ("machine", "own", "ridge"),
    [
        (Machine("cpu", "2 CPU cores", 10**11, 0), profile(), CPU_RIDGE),
        # 989 TFLOP/s, 2 bytes per weight, 3.35 TB/s.
        (Machine("cuda", "NVIDIA H100 80GB HBM3", 10**11, 1), profile(), 295),
        (Machine("cuda", "Some later GPU", 10**11, 1), profile(), UNKNOWN_RIDGE),
    ],
)
def test_the_ridge_is_that_of_the_gpu(machine: Machine, own: Profile, ridge: int) -> None:
    assert _ridge(own, machine) == ridge


class FakeLlm:
    """As much of AsyncLLM as sleeping takes."""

    def __init__(self, awake: bool = True) -> None:
        self.told: list[object] = []
        self._awake = awake

    async def sleep(self, level: int) -> None:
        self.told.append(level)

    async def wake_up(self) -> bool:
        self.told.append("wake")
        return self._awake


def engine_on(llm: FakeLlm | None) -> VllmEngine:
    engine = object.__new__(VllmEngine)
    engine._llm = llm
    return engine


async def test_asleep_the_weights_are_kept_in_host_memory() -> None:
    llm = FakeLlm()
    engine = engine_on(llm)
    await engine.sleep()
    await engine.wake()
    assert llm.told == [1, "wake"]


@pytest.mark.parametrize("llm", [FakeLlm(awake=False), None], ids=["no memory", "closed"])
async def test_an_engine_that_does_not_get_its_memory_back_is_dead(llm: FakeLlm | None) -> None:
    engine = engine_on(llm)
    await engine.sleep()
    with pytest.raises(EngineDied, match="did not get its memory back"):
        await engine.wake()


def test_importing_the_module_imports_no_vllm_and_no_torch() -> None:
    script = "import sys, vera_local.engine.vllm; print(sorted({'vllm', 'torch', 'transformers'} & set(sys.modules)))"
    assert run(script) == "[]\n"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """A log file to be; the loggers that are turned to it are turned back."""
    loggers = [logging.getLogger(name) for name in ("vllm", "transformers")]
    kept = [(logger.handlers, logger.propagate) for logger in loggers]
    yield tmp_path / "engine.log"
    for logger, (handlers, propagate) in zip(loggers, kept, strict=True):
        logger.handlers, logger.propagate = handlers, propagate


def places() -> list[tuple[int, int]]:
    return [(os.fstat(number).st_dev, os.fstat(number).st_ino) for number in (1, 2)]


def test_what_processes_print_meanwhile_is_in_the_file_and_ours_alone_comes_back(
    log: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = places()
    with output_to(log):
        subprocess.run(["sh", "-c", "echo told; echo warned >&2"], check=True)
    os.write(1, b"after")
    assert places() == before
    assert capfd.readouterr() == ("after", "")
    assert log.read_text(encoding="utf-8") == "told\nwarned\n"


def test_a_process_started_meanwhile_keeps_the_file(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with output_to(log):
        late = subprocess.Popen(["sh", "-c", "read word; echo got $word"], stdin=subprocess.PIPE)
    late.communicate(b"it\n")
    assert log.read_text(encoding="utf-8") == "got it\n"
    assert capfd.readouterr().out == ""


def test_a_failed_start_gives_the_terminal_back(log: Path) -> None:
    before = places()
    with pytest.raises(RuntimeError), output_to(log):
        raise RuntimeError("no start")
    assert places() == before


def test_no_descriptor_but_the_log_s_stays_open(log: Path) -> None:
    def open_now() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with output_to(log):
        pass
    before = open_now()
    with output_to(log):
        pass
    assert open_now() <= before + 1


def test_the_file_is_the_owner_s_alone_and_grows(log: Path) -> None:
    kept = os.umask(0)
    try:
        for word in ("one", "two"):
            with output_to(log):
                os.write(2, word.encode())
    finally:
        os.umask(kept)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert log.read_text(encoding="utf-8") == "onetwo"


def test_the_engine_s_later_log_lines_go_to_the_file(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with output_to(log):
        pass
    logging.getLogger("vllm.core").warning("a block was freed")
    assert "a block was freed" in log.read_text(encoding="utf-8")
    assert capfd.readouterr().err == ""


def test_lines_that_python_holds_back_go_where_they_were_meant_to(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    script = f"""
from pathlib import Path
from vera_local.engine.seam import EngineDied
from vera_local.engine.surroundings import output_to
print("before")
with output_to(Path({str(log)!r})):
    print("meanwhile")
print("after")
"""
    assert run(script) == "before\nafter\n"
    assert log.read_text(encoding="utf-8") == "meanwhile\n"


def run(script: str) -> str:
    """What a fresh Python prints into a pipe."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONUNBUFFERED", None)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return done.stdout
