"""What look-ahead gains when only a few long transcripts are left to judge.

The embedded model judges them on a rubric in the modes `reason`, in which decoding dominates, and
`direct`, in which prefill does, each with look-ahead as a run has it and without any. It is too small to judge: its
answers come as good as at random, and its walks are short. So they are held to what judges usually find, which is
nothing: `--usual` is the share of questions whose answer is the one without a finding that leads to the nearest later
question; the others get one that is drawn. With `--usual 0` the answers are the model's own. All else, the reasons
too, is written by the model. With `--bundle psychosis` every question is asked, whatever the answers are. One JSON
object on the last line:

lookahead_speedup, lookahead_speedup_direct: wall time without look-ahead / with it.
same_ratings: whether both gave the same verdicts and ratings, in both modes.
wasted_tokens, wasted_tokens_direct: tokens computed and written for questions that turned out not to be asked; those of
requests given up on the way are estimated.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bench_engine import Recorder, Size, engine_log, forget, open_engine
from bench_run import Judged, grammars, judged
from bench_transcripts import made_up

from vera_local.bundle import Option, Question, load_bundle
from vera_local.conversation import Conversation
from vera_local.engine.grammar import pattern_of
from vera_local.engine.seam import Reply, Request
from vera_local.engine.vllm import VllmEngine
from vera_local.run import EMBEDDED, RunConfig
from vera_local.run.roles import JudgeConfig
from vera_local.run.seats import seats_of
from vera_local.seed import derive

CONTEXT = 4096

Mode = Literal["reason", "direct"]

MODES: tuple[tuple[Mode, str], ...] = (("reason", ""), ("direct", "_direct"))
"""With what is added to the names of their figures."""


class Work(NamedTuple):
    """What is judged: the rubric, transcripts, messages in each, tokens that the judge may reason with, share of usual
    answers (0: the model's own)."""

    bundle: str
    transcripts: int
    turns: int
    tokens: int
    usual: float = 0.0


def a_config(work: Work, mode: Mode, lookahead: int | None) -> RunConfig:
    """One judge in this mode."""
    judge = JudgeConfig(model=EMBEDDED, mode=mode, max_tokens=work.tokens, evidence=False, confidence=False)
    return RunConfig(bundle=work.bundle, judge=(judge,), lookahead=lookahead)


class Held(Recorder):
    """Asks the engine for the answers that judges usually give, to a share of the questions; for drawn ones else."""

    def __init__(self, engine: VllmEngine, share: float, conversations: Iterable[Conversation], config: RunConfig):
        super().__init__(engine)
        self._share = share
        self._rubric, (judge,) = load_bundle(config.bundle).rubric, seats_of(config, load_bundle(config.bundle))
        self._asked = {
            derive(config.seed, c.id, "judge", judge.name, q.id): q
            for c in conversations
            for q in self._rubric.questions
        }

    async def generate(self, request: Request) -> Reply:
        """The engine's reply, of the options only the one that the answer is held to left to it."""
        question = self._asked.get(request.sampling.seed) if self._share and request.pattern is not None else None
        if question is None:
            return await super().generate(request)
        draw = random.Random(request.sampling.seed)
        usual = min(question.options, key=partial(self._from_usual, question))
        option = usual if draw.random() < self._share else draw.choice(question.options)
        return await super().generate(replace(request, pattern=pattern_of([option.answer])))

    def _from_usual(self, question: Question, option: Option) -> tuple[bool, float]:
        following = self._rubric.follow(question, option)
        ahead = 0 if following is None else self._rubric.place(following) - self._rubric.place(question)
        return option.severity is not None, ahead if ahead > 0 else math.inf


def alike(one: Judged, other: Judged) -> bool:
    """Whether verdicts, with their reasons, and ratings are the same."""

    def told(found: Judged) -> set[tuple[Any, ...]]:
        return {(g.conversation, g.place, g.verdict.question, g.verdict.answer, g.verdict.rationale)
                for g in found.verdicts}  # fmt: skip

    return told(one) == told(other) and sorted(map(str, one.ratings)) == sorted(map(str, other.ratings))


async def compare(work: Work, mode: Mode, suffix: str, engine: VllmEngine) -> tuple[dict[str, Any], bool]:
    """One mode without and with look-ahead: the figures, and whether the results are the same."""
    conversations = made_up(work.transcripts, work.turns, sentences=3)
    config = a_config(work, mode, 0)
    without = await judged(config, conversations, Held(engine, work.usual, conversations, config))
    print(f"{mode}, without: {without.measured}", flush=True)
    await forget(engine)
    recorder = Held(engine, work.usual, conversations, config)
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
    sizes = work._asdict()
    sizes["reasoning_tokens"] = sizes.pop("tokens")
    return {**figures, "same_ratings": all(same for _, same in compared), **sizes}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", default="suicide_risk", help="the rubric")
    parser.add_argument("--transcripts", type=int, default=3)
    parser.add_argument("--turns", type=int, default=20, help="messages of a transcript, of about 60 tokens each")
    parser.add_argument("--tokens", type=int, default=160, help="tokens that the judge may reason with")
    parser.add_argument("--usual", type=float, default=0.95, help="share of usual answers; 0: the model's own answers")
    work = Work(**vars(parser.parse_args()))
    print(json.dumps(asyncio.run(measure(work, engine_log()))))


if __name__ == "__main__":
    main()
