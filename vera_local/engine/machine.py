"""What this machine offers a model, and whether a profile fits it. Knows no engine library and no model file."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import Literal, NamedTuple

import psutil

from vera_local.engine.profile import Profile

SHARE = 0.9
"""Share of the memory that a model may take, unless its profile sets gpu_memory_utilization."""

VISIBLE = "CUDA_VISIBLE_DEVICES"

QUERY = ("nvidia-smi", "--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader,nounits")


@dataclass(frozen=True, slots=True)
class Machine:
    """`memory_bytes`: total of the smallest visible GPU, or all RAM on a machine without one; `gpus`: how many."""

    device: Literal["cuda", "cpu"]
    name: str
    memory_bytes: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a profile fits, the tokens its KV cache would hold (None: it does not fit), and why in one sentence."""

    fits: bool
    kv_tokens: int | None
    reason: str


class Gpu(NamedTuple):
    """One line of nvidia-smi."""

    number: str
    uuid: str
    name: str
    memory_bytes: int


def this_machine() -> Machine:
    """The machine we are on, read without loading a GPU library."""
    gpus = visible(_gpus())
    if not gpus:
        return Machine("cpu", f"{os.cpu_count()} CPU cores", _ram_bytes(), 0)
    smallest = min(gpus, key=lambda gpu: gpu.memory_bytes)
    return Machine("cuda", smallest.name, smallest.memory_bytes, len(gpus))


def fit(profile: Profile, machine: Machine) -> Fit:
    """Whether the weights and one full context fit the share of the memory that a model may take."""
    wanted = profile.engine.tensor_parallel_size or 1
    if machine.device == "cuda" and wanted > machine.gpus:
        return Fit(False, None, f"It needs {wanted} GPUs and this machine has {machine.gpus}.")
    share = profile.engine.gpu_memory_utilization or SHARE
    memory = machine.memory_bytes * (wanted if machine.device == "cuda" else 1)
    left = int(memory * share) - loaded_bytes(profile)
    kv = min(left, profile.engine.kv_cache_memory_bytes or left)
    context = profile.context * profile.kv_bytes_per_token
    fits = kv >= context
    reason = (
        f"Weights of {_gb(loaded_bytes(profile))} and one context of {profile.context:,} tokens ({_gb(context)}) "
        f"{'fit' if fits else 'do not fit'} {share:.0%} of {_gb(memory)}{_kv_limit(profile)}."
    )
    return Fit(fits, kv // profile.kv_bytes_per_token if fits else None, reason)


def loaded_bytes(profile: Profile) -> int:
    """What the weights take in memory: float32 doubles 16-bit weights, 16 bits halve float32; packed ones stay."""
    stored = {"bfloat16": 2, "float16": 2, "float32": 4, "quantized": None}[profile.weight_dtype]
    asked = {"auto": None, "bfloat16": 2, "float16": 2, "float32": 4}[profile.engine.dtype]
    scale = asked / stored if stored and asked else 1
    return round(profile.weight_gb * 1e9 * scale)


def free_ram_bytes() -> int:
    """RAM that new processes could have now."""
    return int(psutil.virtual_memory().available)


def _kv_limit(profile: Profile) -> str:
    limit = profile.engine.kv_cache_memory_bytes
    return "" if limit is None else f", with {_gb(limit)} set aside for the KV cache"


def _gb(count: int) -> str:
    return f"{count / 1e9:.1f} GB"


def _gpus() -> list[Gpu]:
    try:
        answer = subprocess.run(QUERY, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [_gpu(line) for line in answer.stdout.splitlines() if line.strip()] if answer.returncode == 0 else []


def _gpu(line: str) -> Gpu:
    number, uuid, name, mebibytes = (part.strip() for part in line.split(","))
    # A GPU that shares the machine's memory reports no total of its own.
    return Gpu(number, uuid, name, int(mebibytes) * 2**20 if mebibytes.isdigit() else _ram_bytes())


def visible(gpus: list[Gpu]) -> list[Gpu]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves; as in CUDA, the first entry that names no GPU ends the list."""
    chosen = os.environ.get(VISIBLE)
    if chosen is None:
        return gpus
    left: list[Gpu] = []
    for entry in (part.strip() for part in chosen.split(",")):
        named = [gpu for gpu in gpus if entry and (entry == gpu.number or gpu.uuid.startswith(entry))]
        if not named:
            break
        left += named[:1]
    return left


def _ram_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
