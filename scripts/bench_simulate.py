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
import json
from pathlib import Path
from typing import Any, NamedTuple

from bench_engine import Offline, Recorder, Size, engine_log, open_engine
from bench_run import simulated

from vera_local.engine.seam import Request
from vera_local.engine.vllm import VllmEngine
from vera_local.run import EMBEDDED, RunConfig
from vera_local.run.roles import ChatbotConfig

CONTEXT = 1024


class Work(NamedTuple):
    """What is simulated: conversations, messages in each, tokens per message of the chatbot, requests at once."""

    conversations: int
    turns: int
    tokens: int
    width: int


def a_config(work: Work) -> RunConfig:
    """The embedded model on both sides."""
    chatbot = ChatbotConfig(model=EMBEDDED, max_tokens=work.tokens)
    return RunConfig(personas=work.conversations, turns=work.turns, chatbot=chatbot)


async def kept(engine: VllmEngine, request: Request) -> int:
    """KV tokens at the end of a request."""
    return await engine.count_tokens(request.messages) + request.sampling.max_tokens


async def measure(work: Work, log: Path) -> dict[str, Any]:
    """All variants, one after the other."""
    config = a_config(work)
    ample = Size(kv_tokens=work.conversations * CONTEXT, context=CONTEXT, sequences=work.width)
    engine = await open_engine(ample, log, [None])
    asked = Recorder(engine)
    ours = await simulated(config, asked)
    print(f"ours, KV for all:     {ours}; {len(asked.requests)} requests", flush=True)
    tokens = work.conversations * max([await kept(engine, request) for request in asked.requests])
    little = ample._replace(kv_tokens=max(CONTEXT, tokens // 3))
    await engine.aclose()

    offline = Offline.open(ample, log, [None])
    bound = offline.chat(asked.requests)
    print(f"bound, KV for all:    {bound}", flush=True)
    offline.close()

    engine = await open_engine(little, log, [None])
    small = await simulated(config, Recorder(engine))
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
