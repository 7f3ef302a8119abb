"""The embedded model on the real vLLM engine, as the benchmarks need it. Knows no rubric and no run."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from vera_local.engine.embedded import NAME
from vera_local.engine.placement import ANYWHERE
from vera_local.engine.profile import Profile, find_profile
from vera_local.engine.seam import NO_USAGE, ChatMessage, Limits, Reply, Request, Sampling, Usage
from vera_local.engine.source import locate
from vera_local.engine.surroundings import output_to
from vera_local.engine.vllm import CPU_BLOCK, VllmEngine, _arguments, _prepare_environment, _sampling


class Size(NamedTuple):
    """An engine's size: `kv_tokens` over all sequences, `context` of one, `sequences` generating at once."""

    kv_tokens: int
    context: int
    sequences: int = 256


class Measured(NamedTuple):
    """What one variant took: seconds by the wall clock, and the tokens of all its requests."""

    seconds: float
    usage: Usage

    def __str__(self) -> str:
        u = self.usage
        return f"{self.seconds:6.1f} s, {u.computed} of {u.prompt} prompt tokens computed, {u.output} written"


class Recorder:
    """An engine that keeps what was asked of it and what that cost; `limits` replaces what it says of its size."""

    def __init__(self, engine: VllmEngine, limits: Limits | None = None) -> None:
        self._engine = engine
        self.limits = limits or engine.limits
        self.markers = engine.markers
        self.begin()

    def begin(self) -> None:
        """Forget all that was asked before."""
        self.requests: list[Request] = []
        self.usage = NO_USAGE
        self.given_up: list[tuple[Request, float]] = []
        """Requests that nobody waited for to the end, and the seconds after which they were given up."""
        self._seconds = 0.0

    async def generate(self, request: Request) -> Reply:
        """Ask the engine."""
        self.requests.append(request)
        began = time.perf_counter()
        try:
            reply = await self._engine.generate(request)
        except asyncio.CancelledError:
            self.given_up.append((request, time.perf_counter() - began))
            raise
        self.usage += reply.usage
        self._seconds += time.perf_counter() - began
        return reply

    def thrown_away(self) -> int:
        """Tokens of the requests that were given up, which no engine tells: of their prompts what no other request
        began with, and what was written in that time at the pace of those that ended. An estimate."""
        pace = self.usage.output / self._seconds if self._seconds else 0.0
        ids = {id(request): self._ids(request) for request in self.requests}
        lost = 0
        for request, seconds in self.given_up:
            own = ids[id(request)]
            shared = max(_common(own, ids[id(other)]) for other in self.requests if other is not request)
            lost += len(own) - shared // CPU_BLOCK * CPU_BLOCK + min(request.sampling.max_tokens, round(seconds * pace))
        return lost

    def _ids(self, request: Request) -> list[int]:
        return [*self._engine._template.ids(request.messages, request.thinking), *request.begun]

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


def unbounded(engine: VllmEngine) -> Limits:
    """Limits of a client that knows nothing of the engine's memory and so holds nothing back."""
    return replace(engine.limits, kv_tokens=None, sequences=1_000_000)


async def open_engine(size: Size, log: Path, patterns: Iterable[str | None]) -> VllmEngine:
    """The embedded model in an engine of this size, as a run opens it, its first steps done and the grammars made."""
    profile = _profile(size)
    engine = VllmEngine.open(profile, locate(profile), log)
    for request in _first(patterns):
        await engine.generate(request)
    await forget(engine)
    return engine


async def forget(engine: VllmEngine) -> None:
    """Empty the prefix cache, so that the next variant finds nothing of the last one's."""
    llm = engine._llm
    assert llm is not None
    if not await llm.reset_prefix_cache():
        raise RuntimeError("the prefix cache is in use and was not emptied")


@dataclass(frozen=True, slots=True)
class Offline:
    """The bound: vLLM's own offline interface, given all requests at once."""

    llm: Any

    @classmethod
    def open(cls, size: Size, log: Path, patterns: Iterable[str | None]) -> Offline:
        """An engine of this size with the options that our own has, and as warm."""
        _prepare_environment()
        with output_to(log):
            from vllm import LLM

            profile = _profile(size)
            arguments = _arguments(profile, locate(profile), ANYWHERE, on_cpu=True)
            # The offline interface has no log of requests that could be switched off.
            del arguments["enable_log_requests"]
            offline = cls(LLM(**arguments))
        offline.chat(list(_first(patterns)))
        if not offline.llm.reset_prefix_cache():
            raise RuntimeError("the prefix cache is in use and was not emptied")
        return offline

    def chat(self, requests: Sequence[Request]) -> Measured:
        """Answer them all in one call, each with the sampling and the pattern that it has."""
        conversations = [[{"role": m.role, "content": m.content} for m in r.messages] for r in requests]
        sampling = [_sampling(r, None) for r in requests]
        began = time.perf_counter()
        outputs = self.llm.chat(conversations, sampling, use_tqdm=False)
        seconds = time.perf_counter() - began
        return Measured(seconds, sum(map(_usage, outputs), NO_USAGE))

    def close(self) -> None:
        """End its processes."""
        self.llm.llm_engine.engine_core.shutdown()


def _first(patterns: Iterable[str | None]) -> Iterable[Request]:
    """A short request for each grammar."""
    messages = (ChatMessage("user", "Answer."),)
    return (Request(messages, Sampling(0.0, 1.0, 2, seed=1), pattern) for pattern in patterns)


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many ids both begin with."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _usage(output: Any) -> Usage:
    written = sum(len(answer.token_ids) for answer in output.outputs)
    return Usage(len(output.prompt_token_ids), output.num_cached_tokens or 0, written)


def _profile(size: Size) -> Profile:
    known = find_profile(NAME)
    # vLLM keeps one block for itself.
    kv_bytes = (size.kv_tokens + CPU_BLOCK) * known.kv_bytes_per_token
    options = known.engine.model_copy(update={"kv_cache_memory_bytes": kv_bytes, "max_num_seqs": size.sequences})
    return known.model_copy(update={"engine": options, "context": size.context})
