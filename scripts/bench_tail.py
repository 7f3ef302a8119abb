"""What look-ahead gains when only a few long transcripts are left to judge.

The embedded model judges them on the rubric suicide_risk in the modes `reason`, in which decoding dominates, and
`direct`, in which prefill does, each with look-ahead as a run has it and without any. One JSON object on the last line:

lookahead_speedup, lookahead_speedup_direct: wall time without look-ahead / with it.
same_ratings: whether both gave the same verdicts and ratings, in both modes.
wasted_tokens, wasted_tokens_direct: tokens computed and written for questions that turned out not to be asked; those of
requests given up on the way are estimated.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bench_engine import Recorder, Size, engine_log, forget, open_engine
from bench_run import Judged, grammars, judged
from bench_transcripts import made_up

from vera_local.engine.vllm import VllmEngine
from vera_local.run import EMBEDDED, RunConfig
from vera_local.run.roles import JudgeConfig

CONTEXT = 4096

Mode = Literal["reason", "direct"]

MODES: tuple[tuple[Mode, str], ...] = (("reason", ""), ("direct", "_direct"))
"""With what is added to the names of their figures."""


class Work(NamedTuple):
    """What is judged: transcripts, messages in each, tokens that the judge may reason with."""

    transcripts: int
    turns: int
    tokens: int


def a_config(work: Work, mode: Mode, lookahead: int | None) -> RunConfig:
    """One judge in this mode."""
    judge = JudgeConfig(model=EMBEDDED, mode=mode, max_tokens=work.tokens, evidence=False, confidence=False)
    return RunConfig(judge=(judge,), lookahead=lookahead)


def alike(one: Judged, other: Judged) -> bool:
    """Whether verdicts, with their reasons, and ratings are the same."""

    def told(found: Judged) -> set[tuple[Any, ...]]:
        return {(g.conversation, g.place, g.verdict.question, g.verdict.answer, g.verdict.rationale)
                for g in found.verdicts}  # fmt: skip

    return told(one) == told(other) and sorted(map(str, one.ratings)) == sorted(map(str, other.ratings))


async def compare(work: Work, mode: Mode, suffix: str, engine: VllmEngine) -> tuple[dict[str, Any], bool]:
    """One mode without and with look-ahead: the figures, and whether the results are the same."""
    conversations = made_up(work.transcripts, work.turns, sentences=3)
    without = await judged(a_config(work, mode, 0), conversations, Recorder(engine))
    print(f"{mode}, without: {without.measured}", flush=True)
    await forget(engine)
    recorder = Recorder(engine)
    ahead = await judged(a_config(work, mode, None), conversations, recorder)
    used = ahead.measured.usage
    wasted = used.computed + used.output - ahead.kept + recorder.thrown_away()
    print(f"{mode}, with:    {ahead.measured}; {wasted} tokens wasted", flush=True)
    await forget(engine)
    told = {
        f"lookahead_speedup{suffix}": round(without.measured.seconds / ahead.measured.seconds, 2),
        f"wasted_tokens{suffix}": wasted,
        f"tokens{suffix}": ahead.kept,
        f"requests{suffix}": len(recorder.requests),
        f"requests_given_up{suffix}": len(recorder.given_up),
        f"verdicts{suffix}": len(ahead.verdicts),
    }
    return told, alike(without, ahead)


async def measure(work: Work, log: Path) -> dict[str, Any]:
    """Both modes."""
    size = Size(kv_tokens=2 * work.transcripts * CONTEXT, context=CONTEXT)
    engine = await open_engine(size, log, grammars(a_config(work, "reason", 0)))
    compared = [await compare(work, mode, suffix, engine) for mode, suffix in MODES]
    await engine.aclose()
    figures = {name: value for told, _ in compared for name, value in told.items()}
    sizes = {"transcripts": work.transcripts, "turns": work.turns, "reasoning_tokens": work.tokens}
    return {**figures, "same_ratings": all(same for _, same in compared), **sizes}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transcripts", type=int, default=3)
    parser.add_argument("--turns", type=int, default=20, help="messages of a transcript, of about 60 tokens each")
    parser.add_argument("--tokens", type=int, default=160, help="tokens that the judge may reason with")
    work = Work(**vars(parser.parse_args()))
    print(json.dumps(asyncio.run(measure(work, engine_log()))))


if __name__ == "__main__":
    main()
