"""The embedded model on the real vLLM engine, as the benchmarks need it. Knows no rubric and no run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from vera_local.engine.embedded import NAME
from vera_local.engine.placement import ANYWHERE
from vera_local.engine.profile import Profile, find_profile
from vera_local.engine.seam import NO_USAGE, ChatMessage, Engine, Limits, Reply, Request, Sampling, Usage
from vera_local.engine.source import locate
from vera_local.engine.surroundings import output_to
from vera_local.engine.vllm import CPU_BLOCK, VllmEngine, _arguments, _prepare_environment, _sampling


class Size(NamedTuple):
    """An engine's size: `kv_tokens` over all sequences, `context` of one, `sequences` generating at once."""

    kv_tokens: int
    context: int
    sequences: int


class Measured(NamedTuple):
    """What one variant took: seconds by the wall clock, and the tokens of all its requests."""

    seconds: float
    usage: Usage

    def __str__(self) -> str:
        u = self.usage
        return f"{self.seconds:6.1f} s, {u.computed} of {u.prompt} prompt tokens computed, {u.output} written"


class Recorder:
    """An engine that keeps what was asked of it and what that cost; `limits` replaces what it says of its size."""

    def __init__(self, engine: Engine, limits: Limits | None = None) -> None:
        self._engine = engine
        self.limits = limits or engine.limits
        self.markers = engine.markers
        self.requests: list[Request] = []
        self.usage = NO_USAGE

    async def generate(self, request: Request) -> Reply:
        """Ask the engine; an unanswered request counts as asked."""
        self.requests.append(request)
        reply = await self._engine.generate(request)
        self.usage += reply.usage
        return reply

    async def count_tokens(self, messages: Sequence[ChatMessage], *, thinking: bool = False) -> int:
        """As the engine counts them."""
        return await self._engine.count_tokens(messages, thinking=thinking)

    async def tokens(self, text: str) -> tuple[int, ...]:
        """As the engine reads them."""
        return await self._engine.tokens(text)

    async def aclose(self) -> None:
        """Nothing: whoever opened the engine closes it."""


def engine_log() -> Path:
    """A file for what the engines print, which stays; tells where it is."""
    log = Path(tempfile.mkdtemp(prefix="vera_local_bench_")) / "engine.log"
    print(f"what the engines print goes to {log}", flush=True)
    return log


def unbounded(engine: Engine) -> Limits:
    """Limits of a client that knows nothing of the engine's memory and so holds nothing back."""
    return replace(engine.limits, kv_tokens=None, sequences=1_000_000)


def open_engine(size: Size, log: Path) -> VllmEngine:
    """The embedded model in an engine of this size, as a run opens it."""
    profile = _profile(size)
    return VllmEngine.open(profile, locate(profile), log)


async def forget(engine: VllmEngine) -> None:
    """Empty the prefix cache, so that the next variant finds nothing of the last one's."""
    llm = engine._llm
    assert llm is not None
    if not await llm.reset_prefix_cache():
        raise RuntimeError("the prefix cache is in use and was not emptied")


async def warm_up(engine: Engine, patterns: Iterable[str | None]) -> None:
    """Have each grammar compiled and the first steps done; leaves a short prompt in the prefix cache."""
    messages = (ChatMessage("user", "Answer."),)
    for pattern in patterns:
        await engine.generate(Request(messages, Sampling(0.0, 1.0, 2, seed=1), pattern))


@dataclass(frozen=True, slots=True)
class Offline:
    """The bound: vLLM's own offline interface, given all requests at once."""

    llm: Any

    @classmethod
    def open(cls, size: Size, log: Path) -> Offline:
        """An engine of this size with the options that our own has."""
        _prepare_environment()
        with output_to(log):
            from vllm import LLM

            profile = _profile(size)
            return cls(LLM(**_arguments(profile, locate(profile), ANYWHERE, on_cpu=True)))

    def forget(self) -> None:
        """Empty the prefix cache."""
        if not self.llm.reset_prefix_cache():
            raise RuntimeError("the prefix cache is in use and was not emptied")

    def chat(self, requests: Sequence[Request]) -> Measured:
        """Answer them all in one call, each with the sampling and the pattern that it has."""
        conversations = [[{"role": m.role, "content": m.content} for m in r.messages] for r in requests]
        sampling = [_sampling(r, None) for r in requests]
        began = time.perf_counter()
        outputs = self.llm.chat(conversations, sampling, use_tqdm=False)
        seconds = time.perf_counter() - began
        return Measured(seconds, sum((_usage(output) for output in outputs), NO_USAGE))

    def close(self) -> None:
        """End its processes."""
        self.llm.llm_engine.engine_core.shutdown()


def _usage(output: Any) -> Usage:
    written = sum(len(answer.token_ids) for answer in output.outputs)
    return Usage(len(output.prompt_token_ids), output.num_cached_tokens or 0, written)


def _profile(size: Size) -> Profile:
    known = find_profile(NAME)
    # vLLM keeps one block for itself.
    tokens = size.kv_tokens + CPU_BLOCK
    options = {"kv_cache_memory_bytes": tokens * known.kv_bytes_per_token, "max_num_seqs": size.sequences}
    return known.model_copy(update={"engine": known.engine.model_copy(update=options), "context": size.context})
