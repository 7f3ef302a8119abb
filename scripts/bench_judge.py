"""How close judging comes to the bare engine, and what admission gains where the KV cache is too small for all.

Transcripts are judged by the embedded model on the rubric suicide_risk in these ways: ours with KV for a third of them,
everything at once with that same KV, ours with KV for all, and the bound: the questions that turned out to be needed,
known in advance, in one call of vLLM's offline interface with KV for all. One JSON object on the last line:

computed_ratio: prompt tokens computed by ours with little KV / by ours with KV for all.
speedup_vs_all_at_once: wall time of everything at once / of ours, both with little KV.
wall_vs_bound: wall time of ours / of the bound, both with KV for all; wall_small_vs_bound: of ours with little KV.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from bench_engine import Offline, Recorder, Size, engine_log, forget, open_engine, unbounded
from bench_run import Judged, grammars, judged
from bench_transcripts import made_up

from vera_local.engine.seam import Request
from vera_local.run import EMBEDDED, RunConfig
from vera_local.run.roles import JudgeConfig
from vera_local.seed import derive

CONTEXT = 1024

# One that asks nothing beside the questions, so that a request is a pair of transcript and question.
JUDGE = JudgeConfig(model=EMBEDDED, evidence=False, confidence=False)
OURS = RunConfig(judge=(JUDGE,))
AT_ONCE = RunConfig(judge=(JUDGE,), lookahead=0)
"""Each conversation is asked one question after the other, as VERA-MH's own client does."""


class Work(NamedTuple):
    """What is judged: transcripts, and messages in each."""

    transcripts: int
    turns: int


def needed(requests: Iterable[Request], found: Judged) -> list[Request]:
    """The requests whose answers were kept; each has its own seed."""
    kept = {derive(OURS.seed, g.conversation, "judge", g.judge, g.verdict.question) for g in found.verdicts}
    return [request for request in requests if request.sampling.seed in kept]


async def measure(work: Work, log: Path) -> dict[str, Any]:
    """All variants, one after the other."""
    conversations, patterns = made_up(work.transcripts, work.turns, sentences=3), grammars(OURS)
    ample = Size(kv_tokens=work.transcripts * CONTEXT, context=CONTEXT)
    engine = await open_engine(ample, log, patterns)
    asked = Recorder(engine)
    ours = await judged(OURS, conversations, asked)
    print(f"ours, KV for all:       {ours.measured}; {len(asked.requests)} requests", flush=True)
    pairs = needed(asked.requests, ours)
    longest = {g.conversation: g.verdict.usage.prompt for g in ours.verdicts}
    await engine.aclose()

    offline = Offline.open(ample, log, patterns)
    bound = offline.chat(pairs)
    print(f"bound, KV for all:      {bound}; {len(pairs)} requests", flush=True)
    offline.close()

    kv_little = max(CONTEXT, sum(longest.values()) // 3)
    engine = await open_engine(ample._replace(kv_tokens=kv_little), log, patterns)
    little = await judged(OURS, conversations, Recorder(engine))
    print(f"ours, KV for a third:   {little.measured}", flush=True)
    await forget(engine)
    at_once = await judged(AT_ONCE, conversations, Recorder(engine, unbounded(engine)))
    print(f"all at once, the same:  {at_once.measured}", flush=True)
    await engine.aclose()
    return {
        "computed_ratio": round(little.measured.usage.computed / ours.measured.usage.computed, 3),
        "speedup_vs_all_at_once": round(at_once.measured.seconds / little.measured.seconds, 2),
        "wall_vs_bound": round(ours.measured.seconds / bound.seconds, 3),
        "wall_small_vs_bound": round(little.measured.seconds / bound.seconds, 3),
        "same_ratings": ours.ratings == little.ratings == at_once.ratings,
        **work._asdict(),
        "transcript_tokens": round(sum(longest.values()) / work.transcripts),
        "kv_tokens": sum(longest.values()),
        "kv_tokens_little": kv_little,
        "requests": len(asked.requests),
        "verdicts": len(pairs),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transcripts", type=int, default=12)
    parser.add_argument("--turns", type=int, default=8, help="messages of a transcript, of about 60 tokens each")
    work = Work(**vars(parser.parse_args()))
    print(json.dumps(asyncio.run(measure(work, engine_log()))))


if __name__ == "__main__":
    main()
