"""How close judging comes to the bare engine, and what admission gains where the KV cache is too small for all.

Transcripts are judged by the embedded model on the rubric suicide_risk in these ways: ours with KV for a third of them,
everything at once with that same KV, ours with KV for all, and the bound: the same requests, known in advance, in one
call of vLLM's offline interface with KV for all. One JSON object on the last line:

computed_ratio: prompt tokens computed by ours with little KV / by ours with KV for all.
speedup_vs_all_at_once: wall time of everything at once / of ours, both with little KV.
wall_vs_bound: wall time of ours / of the bound, both with KV for all; wall_small_vs_bound: of ours with little KV.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench_engine import Measured, Offline, Recorder, Size, engine_log, forget, open_engine, unbounded, warm_up
from bench_transcripts import made_up
from rich.console import Console

from vera_local.conversation import Conversation
from vera_local.engine.grammar import pattern_of
from vera_local.engine.vllm import VllmEngine
from vera_local.run import EMBEDDED, Plan, RunConfig, Watcher, make_plan
from vera_local.run.judging import judge_stage, make_judge
from vera_local.run.roles import JudgeConfig
from vera_local.run.store import Store

CONTEXT = 1024


def a_plan(folder: Path) -> Plan:
    """One judge that asks nothing beside the questions, so that a request is a pair of transcript and question."""
    judge = JudgeConfig(model=EMBEDDED, evidence=False, confidence=False)
    return make_plan(RunConfig(out=folder, judge=(judge,)))


async def judged(plan: Plan, conversations: Sequence[Conversation], engine: Recorder) -> Measured:
    """Judge all of them from the beginning, as a run does."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        store.record(conversations)
        began = time.perf_counter()
        await judge_stage(plan, plan.judges[0], store, engine, Watcher(Console(file=io.StringIO())))
        return Measured(time.perf_counter() - began, engine.usage)


async def needed(plan: Plan, conversations: Sequence[Conversation], engine: VllmEngine) -> int:
    """KV tokens for all of them at once."""
    judge = make_judge(plan, plan.judges[0], engine)
    questions = plan.bundle.rubric.questions
    return sum([await judge.kept(await judge.look(c), questions) for c in conversations])


def patterns(plan: Plan) -> set[str]:
    """The grammars of all questions."""
    return {pattern_of([o.answer for o in q.options]) for q in plan.bundle.rubric.questions if not q.auto}


async def measure(count: int, turns: int, log: Path) -> dict[str, Any]:
    """All variants, one after the other."""
    plan, conversations = a_plan(log.parent), made_up(count, turns, sentences=3)
    ample = Size(kv_tokens=count * CONTEXT, context=CONTEXT, sequences=256)
    engine = open_engine(ample, log)
    await warm_up(engine, patterns(plan))
    tokens = await needed(plan, conversations, engine)
    print(f"{count} transcripts, KV for all: {tokens} tokens", flush=True)
    await forget(engine)
    asked = Recorder(engine)
    ours = await judged(plan, conversations, asked)
    print(f"ours, KV for all:      {ours}; {len(asked.requests)} requests", flush=True)
    await engine.aclose()

    offline = Offline.open(ample, log)
    offline.chat(asked.requests[:1])
    offline.forget()
    bound = offline.chat(asked.requests)
    print(f"bound, KV for all:     {bound}", flush=True)
    offline.close()

    little_kv = max(CONTEXT, tokens // 3)
    engine = open_engine(ample._replace(kv_tokens=little_kv), log)
    await warm_up(engine, patterns(plan))
    await forget(engine)
    little = await judged(plan, conversations, Recorder(engine))
    print(f"ours, KV for a third:  {little}", flush=True)
    await forget(engine)
    at_once = await judged(plan, conversations, Recorder(engine, unbounded(engine)))
    print(f"all at once, the same: {at_once}", flush=True)
    await engine.aclose()
    return {
        "computed_ratio": round(little.usage.computed / ours.usage.computed, 3),
        "speedup_vs_all_at_once": round(at_once.seconds / little.seconds, 2),
        "wall_vs_bound": round(ours.seconds / bound.seconds, 3),
        "wall_small_vs_bound": round(little.seconds / bound.seconds, 3),
        "transcripts": count,
        "requests": len(asked.requests),
        "kv_tokens": tokens,
        "kv_tokens_little": little_kv,
        "prompt_tokens": ours.usage.prompt,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transcripts", type=int, default=12)
    parser.add_argument("--turns", type=int, default=10, help="messages per transcript, of about 45 tokens each")
    sizes = parser.parse_args()
    log = engine_log()
    print(json.dumps(asyncio.run(measure(sizes.transcripts, sizes.turns, log))))


if __name__ == "__main__":
    main()
