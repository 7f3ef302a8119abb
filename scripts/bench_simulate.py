"""How close simulation comes to the bare engine, and what it computes anew where the KV cache is too small for all.

The embedded model plays personas of the bundle suicide_risk and the chatbot, on one engine, in these ways: with KV for
all conversations, with KV for a third of them, and the bound: the requests of the first, known in advance with their
seeds, in one call of vLLM's offline interface, as wide and with as much KV. One JSON object on the last line:

computed_ratio: prompt tokens computed with little KV / with KV for all.
wall_vs_bound: wall time with KV for all / of the bound.
wall_small_vs_bound: wall time with little KV / of the bound.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench_engine import Measured, Offline, Recorder, Size, engine_log, forget, open_engine, warm_up
from rich.console import Console

from vera_local.engine.seam import Request
from vera_local.engine.vllm import VllmEngine
from vera_local.run import EMBEDDED, Plan, RunConfig, Watcher, make_plan
from vera_local.run.roles import ChatbotConfig, SimulatorConfig
from vera_local.run.simulating import simulate_stage
from vera_local.run.store import Store

CONTEXT = 1024


class Work(NamedTuple):
    """What is simulated: conversations, messages in each, tokens per message of the chatbot, requests at once."""

    conversations: int
    turns: int
    tokens: int
    width: int


def a_plan(folder: Path, work: Work) -> Plan:
    """The embedded model on both sides."""
    config = RunConfig(
        out=folder,
        personas=work.conversations,
        turns=work.turns,
        simulator=(SimulatorConfig(model=EMBEDDED),),
        chatbot=ChatbotConfig(model=EMBEDDED, max_tokens=work.tokens),
    )
    return make_plan(config)


async def simulated(plan: Plan, engine: Recorder) -> Measured:
    """Hold all conversations from the beginning, as a run does."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        store.begin(plan.conversations())
        began = time.perf_counter()
        await simulate_stage(plan, store, lambda player: engine, Watcher(Console(file=io.StringIO())))
        return Measured(time.perf_counter() - began, engine.usage)


async def _opened(size: Size, log: Path) -> VllmEngine:
    """An engine that has done its first steps and remembers nothing of them."""
    engine = open_engine(size, log)
    await warm_up(engine, [None])
    await forget(engine)
    return engine


async def _kept(engine: VllmEngine, request: Request) -> int:
    """KV tokens at the end of a request."""
    return await engine.count_tokens(request.messages) + request.sampling.max_tokens


async def measure(work: Work, log: Path) -> dict[str, Any]:
    """All variants, one after the other."""
    plan = a_plan(log.parent, work)
    ample = Size(kv_tokens=work.conversations * CONTEXT, context=CONTEXT, sequences=work.width)
    engine = await _opened(ample, log)
    asked = Recorder(engine)
    ours = await simulated(plan, asked)
    print(f"ours, KV for all:     {ours}; {len(asked.requests)} requests", flush=True)
    tokens = work.conversations * max([await _kept(engine, request) for request in asked.requests])
    little = ample._replace(kv_tokens=max(CONTEXT, tokens // 3))
    await engine.aclose()

    offline = Offline.open(ample, log)
    offline.chat(asked.requests[:1])
    offline.forget()
    bound = offline.chat(asked.requests)
    print(f"bound, KV for all:    {bound}", flush=True)
    offline.close()

    engine = await _opened(little, log)
    small = await simulated(plan, Recorder(engine))
    print(f"ours, KV for a third: {small}", flush=True)
    await engine.aclose()
    return {
        "computed_ratio": round(small.usage.computed / ours.usage.computed, 3),
        "wall_vs_bound": round(ours.seconds / bound.seconds, 3),
        "wall_small_vs_bound": round(small.seconds / bound.seconds, 3),
        **work._asdict(),
        "requests": len(asked.requests),
        "kv_tokens": tokens,
        "kv_tokens_little": little.kv_tokens,
        "output_tokens": ours.usage.output,
        "output_tokens_bound": bound.usage.output,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=32)
    parser.add_argument("--turns", type=int, default=4, help="messages per conversation")
    parser.add_argument("--tokens", type=int, default=48, help="most tokens of a message of the chatbot")
    parser.add_argument("--width", type=int, default=8, help="requests that the engine works on at once")
    work = Work(**vars(parser.parse_args()))
    log = engine_log()
    print(json.dumps(asyncio.run(measure(work, log))))


if __name__ == "__main__":
    main()
