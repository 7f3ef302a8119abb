from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from vera_local.engine.machine import Machine, fit, loaded_bytes, this_machine
from vera_local.engine.profile import EngineOptions, Profile, find_profile, list_profiles

TWO_GPUS = "0, GPU-aaa, NVIDIA A, 49140\n1, GPU-bbb, NVIDIA B, 24564\n"


def gpu(gigabytes: float, count: int = 1) -> Machine:
    return Machine("cuda", "test", int(gigabytes * 1e9), count)


def changed(name: str, **engine: object) -> Profile:
    profile = find_profile(name)
    return profile.model_copy(update={"engine": EngineOptions.model_validate(profile.engine_arguments() | engine)})


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A nvidia-smi that prints what is written to the file `out` beside it."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\nwhile read line; do echo "$line"; done < {tmp_path / "out"}\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path / "out"


def test_the_smallest_gpu_counts(smi: Path) -> None:
    smi.write_text(TWO_GPUS, encoding="utf-8")

    assert this_machine() == Machine("cuda", "NVIDIA B", 24564 * 2**20, 2)


@pytest.mark.parametrize("visible", ["0", "GPU-aaa", "0,-1,1", "0,"])
def test_only_visible_gpus_count(smi: Path, monkeypatch: pytest.MonkeyPatch, visible: str) -> None:
    smi.write_text(TWO_GPUS, encoding="utf-8")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert this_machine() == Machine("cuda", "NVIDIA A", 49140 * 2**20, 1)


@pytest.mark.parametrize("visible", ["", "-1"])
def test_with_every_gpu_hidden_it_is_a_cpu_machine(smi: Path, monkeypatch: pytest.MonkeyPatch, visible: str) -> None:
    smi.write_text(TWO_GPUS, encoding="utf-8")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert this_machine().device == "cpu"


def test_a_gpu_that_shares_the_ram_has_its_size(smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    smi.write_text("0, GPU-aaa, NVIDIA C, [N/A]\n", encoding="utf-8")
    shared = this_machine()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    assert shared == Machine("cuda", "NVIDIA C", this_machine().memory_bytes, 1)


def test_without_nvidia_smi_it_is_a_cpu_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    machine = this_machine()

    assert (machine.device, machine.gpus) == ("cpu", 0)
    assert machine.memory_bytes > 10**8


def test_a_failing_nvidia_smi_is_no_gpu(smi: Path) -> None:
    assert not smi.exists()

    assert this_machine().device == "cpu"


def test_what_the_weights_leave_holds_the_kv_cache() -> None:
    profile = find_profile("qwen3-8b")

    found = fit(profile, gpu(24))

    assert found.fits
    assert found.kv_tokens == int(24e9 * 0.9 - 16.4e9) // 147456


def test_one_context_must_fit_beside_the_weights() -> None:
    profile = find_profile("qwen3-8b")
    needed = (16.4e9 + profile.context * profile.kv_bytes_per_token) / 0.9

    assert fit(profile, gpu((needed + 1e6) / 1e9)).fits
    below = fit(profile, gpu((needed - 1e6) / 1e9))
    assert not below.fits
    assert below.kv_tokens is None
    assert "do not fit" in below.reason


def test_parallel_gpus_add_up() -> None:
    profile = changed("qwen3-32b", tensor_parallel_size=2)

    assert not fit(find_profile("qwen3-32b"), gpu(48, 2)).fits
    assert fit(profile, gpu(48, 2)).fits
    assert "needs 2 GPUs" in fit(profile, gpu(141, 1)).reason


def test_on_a_cpu_parallel_ranks_share_one_memory() -> None:
    profile = changed("qwen3-32b", tensor_parallel_size=4)

    assert not fit(profile, Machine("cpu", "test", int(48e9), 0)).fits


def test_float32_doubles_weights_published_in_16_bits() -> None:
    assert loaded_bytes(find_profile("qwen3-8b")) == int(16.4e9)
    assert loaded_bytes(changed("qwen3-8b", dtype="float32")) == int(32.8e9)
    assert not fit(changed("qwen3-8b", dtype="float32"), Machine("cpu", "test", int(32e9), 0)).fits


def test_float32_leaves_weights_that_are_float32_or_packed() -> None:
    assert loaded_bytes(find_profile("smollm2-135m-instruct")) == int(0.538e9)
    assert loaded_bytes(changed("smollm2-135m-instruct", dtype="bfloat16")) == int(0.269e9)
    assert loaded_bytes(changed("qwen3-14b-awq", dtype="float16")) == int(10e9)


def test_a_fixed_kv_cache_bounds_the_tokens() -> None:
    cpu = Machine("cpu", "test", int(16e9), 0)

    assert fit(find_profile("smollm2-135m-instruct"), cpu).kv_tokens == 2**30 // 46080
    assert not fit(changed("smollm2-135m-instruct", kv_cache_memory_bytes=1000), cpu).fits


def test_the_profiles_own_share_of_the_memory_counts() -> None:
    assert fit(find_profile("qwen3-8b"), gpu(24)).fits
    assert not fit(changed("qwen3-8b", gpu_memory_utilization=0.5), gpu(24)).fits


def test_every_shipped_profile_fits_the_box_it_is_meant_for() -> None:
    boxes = Counter[int]()
    for profile in list_profiles():
        if profile.fits is not None:
            assert fit(profile, gpu(profile.fits.gpu_gb)).fits, profile.name
            boxes[profile.fits.gpu_gb] += 1

    assert boxes.keys() == {24, 48, 80, 141}
    assert min(boxes.values()) >= 2
