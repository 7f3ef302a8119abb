"""What look-ahead gains when only a few long transcripts are left to judge.

The embedded model judges them on the rubric suicide_risk in the modes `reason`, in which decoding dominates, and
`direct`, in which prefill does, each with look-ahead as a run has it and without any. One JSON object on the last line:

lookahead_speedup, lookahead_speedup_direct: wall time without look-ahead / with it.
same_ratings: whether both gave the same verdicts and ratings, in both modes.
wasted_tokens, wasted_tokens_direct: tokens computed or written for questions that turned out not to be asked.
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
from typing import Any, Literal, NamedTuple

from bench_engine import Measured, Recorder, Size, engine_log, forget, open_engine, warm_up
from bench_transcripts import made_up
from rich.console import Console

from vera_local.conversation import Conversation
from vera_local.engine.grammar import pattern_of
from vera_local.engine.seam import NO_USAGE
from vera_local.engine.vllm import VllmEngine
from vera_local.run import EMBEDDED, Plan, RunConfig, Watcher, make_plan
from vera_local.run.judging import judge_stage
from vera_local.run.roles import JudgeConfig
from vera_local.run.store import Store

CONTEXT = 4096

Mode = Literal["reason", "direct"]

MODES: tuple[tuple[Mode, str], ...] = (("reason", ""), ("direct", "_direct"))
"""With what is added to the names of their figures."""


class Judged(NamedTuple):
    """What judging took and gave; `kept` are the prompt tokens computed and the tokens written of its verdicts."""

    measured: Measured
    kept: int
    given: Any

    @property
    def wasted(self) -> int:
        """Tokens computed or written of what was not kept."""
        usage = self.measured.usage
        return usage.computed + usage.output - self.kept


class Work(NamedTuple):
    """What is judged: transcripts, messages in each, tokens that the judge may reason with."""

    transcripts: int
    turns: int
    tokens: int


def a_plan(folder: Path, work: Work, mode: Mode, lookahead: int | None) -> Plan:
    """One judge in this mode."""
    judge = JudgeConfig(model=EMBEDDED, mode=mode, max_tokens=work.tokens, evidence=False, confidence=False)
    return make_plan(RunConfig(out=folder, judge=(judge,), lookahead=lookahead))


async def judged(plan: Plan, conversations: Sequence[Conversation], engine: VllmEngine) -> Judged:
    """Judge all of them from the beginning, as a run does."""
    await forget(engine)
    recorder = Recorder(engine)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        store.record(conversations)
        began = time.perf_counter()
        await judge_stage(plan, plan.judges[0], store, recorder, Watcher(Console(file=io.StringIO())))
        seconds = time.perf_counter() - began
        verdicts = list(store.all_verdicts())
        used = sum((v.verdict.usage for v in verdicts), NO_USAGE)
        said = [(v.conversation, v.place, v.verdict.question, v.verdict.answer, v.verdict.rationale) for v in verdicts]
        return Judged(Measured(seconds, recorder.usage), used.computed + used.output, (said, store.ratings()))


def patterns(plan: Plan) -> set[str]:
    """The grammars of all questions."""
    return {pattern_of([o.answer for o in q.options]) for q in plan.bundle.rubric.questions if not q.auto}


async def measure(work: Work, log: Path) -> dict[str, Any]:
    """Both modes, without and with."""
    conversations = made_up(work.transcripts, work.turns, sentences=3)
    engine = open_engine(Size(kv_tokens=2 * work.transcripts * CONTEXT, context=CONTEXT, sequences=256), log)
    told: dict[str, Any] = {}
    same = True
    for mode, suffix in MODES:
        await warm_up(engine, patterns(a_plan(log.parent, work, mode, 0)))
        without = await judged(a_plan(log.parent, work, mode, 0), conversations, engine)
        print(f"{mode}, without: {without.measured}", flush=True)
        ahead = await judged(a_plan(log.parent, work, mode, None), conversations, engine)
        print(f"{mode}, with:    {ahead.measured}; {ahead.wasted} tokens wasted", flush=True)
        same = same and ahead.given == without.given
        told[f"lookahead_speedup{suffix}"] = round(without.measured.seconds / ahead.measured.seconds, 2)
        told[f"wasted_tokens{suffix}"] = ahead.wasted
        told[f"verdicts{suffix}"] = len(ahead.given[0])
    await engine.aclose()
    told |= {"same_ratings": same, **work._asdict()}
    return told


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transcripts", type=int, default=3)
    parser.add_argument("--turns", type=int, default=20, help="messages per transcript, of about 60 tokens each")
    parser.add_argument("--tokens", type=int, default=160, help="tokens that the judge may reason with")
    work = Work(**vars(parser.parse_args()))
    print(json.dumps(asyncio.run(measure(work, engine_log()))))


if __name__ == "__main__":
    main()
