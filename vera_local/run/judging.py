"""The stage in which one judge rates all conversations of a run. Knows no persona and no chatbot."""

from __future__ import annotations

import asyncio
from functools import cache

from vera_local.bundle import Question, Rubric
from vera_local.conversation import Conversation
from vera_local.engine.admission import Admission
from vera_local.engine.seam import Engine
from vera_local.judge import Judge, Verdict, judge_conversation
from vera_local.run.checks import check_lengths
from vera_local.run.plan import Plan
from vera_local.run.progress import Meter, Watcher
from vera_local.run.seats import Seat
from vera_local.run.stage import Stage
from vera_local.run.store import Store


async def judge_stage(plan: Plan, seat: Seat, store: Store, engine: Engine, watcher: Watcher) -> None:
    """Rate every judgeable conversation that was not rated from this seat yet.

    Raises EngineDied (in an ExceptionGroup); the verdicts given until then are in the store.
    """
    judge = make_judge(plan, seat, engine)
    store.forget_failed(seat.name)
    waiting = unrated(store, seat)
    await check_lengths(judge, plan.bundle.rubric, waiting, watcher.say)
    needs = {c.id: await _kept(judge, plan.bundle.rubric, c) for c in waiting}
    admission = Admission.to(engine.limits)
    label = "Judging" if len(plan.judges) == 1 else f"Judging by {seat.name}"
    meter = Meter(label, len(waiting), len(waiting) * longest_path(plan.bundle.rubric))
    with watcher.stage(meter) as changed:
        stage = Stage(store, admission, meter, changed)
        async with asyncio.TaskGroup() as group:
            for c in sorted(waiting, key=lambda c: -needs[c.id]):
                group.create_task(_rate(stage, judge, plan.bundle.rubric, c, needs[c.id]))


def unrated(store: Store, seat: Seat) -> list[Conversation]:
    """The conversations that are still to be judged from a seat."""
    rated = store.rated(seat.name)
    return [c for c in store.conversations() if c.judgeable and c.id not in rated]


def make_judge(plan: Plan, seat: Seat, engine: Engine) -> Judge:
    """The judge of a seat on this engine."""
    prompts, profile = plan.bundle.prompts, seat.player.profile
    short = profile.roles.judge.prompt == "short"
    return Judge(
        name=seat.name,
        engine=engine,
        draw=seat.player.draw,
        prompts=prompts,
        question=prompts.judge_question_short if short else prompts.judge_question,
        seed=plan.config.seed,
        mode=seat.mode,
        thinking=profile.template.thinks,
        evidence=seat.evidence,
        confidence=seat.confidence,
        window=seat.window,
    )


def longest_path(rubric: Rubric) -> int:
    """How many questions a walk asks at most."""

    @cache
    def from_here(question: Question | None) -> int:
        if question is None:
            return 0
        return 1 + max(from_here(rubric.follow(question, option)) for option in question.options)

    return from_here(rubric.questions[0])


async def _kept(judge: Judge, rubric: Rubric, conversation: Conversation) -> int:
    return await judge.kept(await judge.look(conversation, rubric.questions), rubric.questions)


async def _rate(stage: Stage, judge: Judge, rubric: Rubric, conversation: Conversation, tokens: int) -> None:
    """One conversation, from admission to its ratings in the store."""
    asked = 0

    def record(place: int, verdict: Verdict) -> None:
        nonlocal asked
        stage.store.add_verdict(conversation.id, judge.name, place, verdict)
        asked += 1
        stage.step(verdict.usage)

    async with stage.job(tokens):
        known = stage.store.verdicts(conversation.id, judge.name)
        shown = await judge.look(conversation, rubric.questions)
        ratings = await judge_conversation(judge, rubric, shown, known, record)
        stage.store.set_ratings(conversation.id, judge.name, ratings)
        stage.meter.steps -= longest_path(rubric) - asked
