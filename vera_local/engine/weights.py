"""How many numbers a model's weights are, and how large each. Knows no GPU and opens no file."""

from __future__ import annotations

from vera_local.engine.machine import loaded_bytes
from vera_local.engine.profile import Profile

BILLION = 1e9


def parameters(profile: Profile) -> float | None:
    """All of them, as the profile says or as size and dtype tell; None for packed weights of which it says nothing."""
    if profile.parameters_billion is not None:
        return profile.parameters_billion * BILLION
    size = {"bfloat16": 2, "float16": 2, "float32": 4, "quantized": None}[profile.weight_dtype]
    return None if size is None else profile.weight_gb * BILLION / size


def active_parameters(profile: Profile) -> float | None:
    """Those that one token is multiplied with: all, but for a mixture of experts."""
    return parameters(profile) if profile.active_billion is None else profile.active_billion * BILLION


def bytes_per_weight(profile: Profile) -> float | None:
    """The mean size of a parameter in memory; None where their number is unknown."""
    total = parameters(profile)
    return None if total is None else loaded_bytes(profile) / total
