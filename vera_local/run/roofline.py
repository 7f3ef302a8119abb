"""How long a GPU takes for tokens, from its data sheet. An estimate: knows no run, and nothing here was measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vera_local.engine.gpus import Gpu
from vera_local.engine.machine import loaded_bytes
from vera_local.engine.profile import Profile
from vera_local.engine.weights import active_parameters, bytes_per_weight, parameters
from vera_local.run.paper import Work

COMPUTED = 0.5
"""The part of a GPU's FLOP/s that prefill is taken to reach."""

READ = 0.6
"""The part of its bandwidth that decoding is taken to reach."""

PACKED_BYTES = 0.5
"""Bytes per parameter of packed weights of which nothing is known: four bits, the most parameters they can be."""


@dataclass(frozen=True, slots=True)
class Model:
    """What a step costs: bytes of all weights, bytes of one token's KV, all parameters and those that a token meets."""

    weights: float
    kv: float
    parameters: float
    active: float

    @classmethod
    def of(cls, profile: Profile) -> Model:
        """By the profile; where it does not tell the parameters of packed weights, as many as they can be."""
        weights = loaded_bytes(profile)
        total = parameters(profile) or weights / PACKED_BYTES
        return cls(weights, profile.kv_bytes_per_token, total, active_parameters(profile) or total)

    def read(self, width: float) -> float:
        """Bytes of weights that a step of so many tokens reads: all, or the experts that one of the tokens needs."""
        untouched: float = (1 - self.active / self.parameters) ** width
        return self.weights * (1 - untouched)


@dataclass(frozen=True, slots=True)
class Box:
    """One engine's GPUs, as one that has the speed of all."""

    gpu: Gpu
    gpus: int = 1

    def seconds(self, work: Work, profile: Profile, width: float) -> float:
        """For `work`, with so many requests at once: prompts are computed, then tokens are written one by one.

        A step takes as long as reading weights and KV cache, or as computing its tokens, whichever is longer.
        """
        if not work.requests:
            return 0.0
        model = Model.of(profile)
        sequence = (work.prompt + work.output / 2) / work.requests
        # The first token of an answer comes with the prompt.
        decoded = max(0.0, work.output - work.requests)
        rounds, steps = work.requests / width, decoded / width
        prefill = self._step(profile, model, width * work.computed / work.requests, width * sequence)
        return rounds * prefill + steps * self._step(profile, model, width, width * sequence)

    def _step(self, profile: Profile, model: Model, tokens: float, held: float) -> float:
        """Seconds of one step that computes so many tokens and reads the KV cache of `held`."""
        flops = self.gpu.flops(bytes_per_weight(profile) or PACKED_BYTES) * self.gpus * COMPUTED
        bandwidth = self.gpu.bandwidth * self.gpus * READ
        return max((model.read(tokens) + held * model.kv) / bandwidth, 2 * model.active * tokens / flops)


def assumptions(gpu: Gpu, profiles: list[Profile]) -> Iterator[str]:
    """What a time rests on, in sentences."""
    fp8 = "" if gpu.fp8 is None else f" ({gpu.fp8 / 1e12:,.0f} with 8-bit weights)"
    yield (
        f"{gpu.name} by its data sheet: {gpu.bandwidth / 1e12:.2f} TB/s, {gpu.bf16 / 1e12:,.0f} dense bfloat16 "
        f"TFLOP/s{fp8}, {gpu.memory_bytes / 1e9:.0f} GB."
    )
    yield (
        f"Prefill reaches {COMPUTED:.0%} of the FLOP/s and decoding {READ:.0%} of the bandwidth; the work of attention "
        "itself, the traffic between GPUs and the starting of engines are not counted."
    )
    for profile in profiles:
        if parameters(profile) is None:
            yield (
                f"{profile.name}: its profile says no parameters_billion, so its packed weights count as 4 bits each."
            )
