"""Hundreds of questions put to engines that keep to their options or do not, from every rubric at hand."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from vera_local.bundle import Bundle, Question, load_bundle
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.fake import FakeEngine, Handler
from vera_local.engine.probe import probe_constraint
from vera_local.engine.seam import Draw, Finish, Reply, Request, Usage
from vera_local.engine.thinking import FORMATS
from vera_local.errors import UserError
from vera_local.judge import Judge, Mode, State, Verdict

OFFICIAL = Path(__file__).parents[2] / "../shared/data/vera-mh-1.1"
TALK = Conversation(
    "Ann-1", "Ann", 1, (Message(Speaker.PERSONA, "hi"), Message(Speaker.CHATBOT, "What is it?")), Ending.TURNS
)
MODES = (Mode.DIRECT, Mode.REASON, Mode.THINK)
ROUNDS = 3


def bundles() -> list[Bundle]:
    names: list[str | Path] = ["suicide_risk", "psychosis", *([OFFICIAL] if OFFICIAL.is_dir() else [])]
    return [load_bundle(name) for name in names]


def options(request: Request) -> list[str]:
    assert request.pattern is not None
    return [o.replace("\\", "") for o in request.pattern.strip("()$").split("|")]


def free(request: Request) -> str:
    return "Weighed. Answer:" if request.stop == "Answer:" else "hm </think>"


def held(request: Request) -> str:
    """An engine that keeps to the options."""
    if request.pattern is None:
        return free(request)
    return random.Random(request.sampling.seed).choice(options(request))


def wild(request: Request) -> str | Reply:
    """An engine that takes no notice of the grammar: options spoilt in every way, and now and then a good one."""
    if request.pattern is None:
        return free(request)
    draw = random.Random(request.sampling.seed)
    option = draw.choice(options(request))
    spoilt = [
        option,
        f" {option}",
        f"{option}.",
        f"{option}\n",
        option[:-1],
        option.swapcase(),
        option * 2,
        "",
        "Paris",
    ]
    if draw.random() < 0.1:
        return Reply(option, Finish.LENGTH, Usage(1, 0, 1))
    return draw.choice(spoilt)


async def asked(handler: Handler) -> list[tuple[Question, Verdict]]:
    """Every question of every bundle in every mode, some times over."""
    given = []
    for bundle in bundles():
        for mode in MODES:
            for seed in range(ROUNDS):
                draw, question = Draw(1.0, 1.0, 20), bundle.prompts.judge_question
                judge = Judge(
                    "own", FakeEngine(handler), draw, bundle.prompts, question, seed, mode,
                    FORMATS["qwen3"], evidence=False, confidence=False,
                )  # fmt: skip
                shown = await judge.look(TALK)
                given += [(q, await judge.ask(shown, q)) for q in bundle.rubric.questions if not q.auto]
    assert len(given) > (500 if OFFICIAL.is_dir() else 350)
    return given


async def test_every_answer_is_exactly_an_option() -> None:
    given = await asked(held)
    assert {v.state for _, v in given} == {State.ANSWERED}
    assert all(v.answer in {o.answer for o in q.options} for q, v in given)
    assert {v.mode for _, v in given} == set(MODES)


async def test_whatever_an_engine_without_the_constraint_writes_is_an_option_or_invalid() -> None:
    given = await asked(wild)
    states = Counter(v.state for _, v in given)
    assert states.keys() == {State.ANSWERED, State.INVALID} and min(states.values()) > 20
    for question, verdict in given:
        named = {o.answer for o in question.options}
        assert (verdict.answer in named) == (verdict.state is State.ANSWERED)
        assert verdict.state is State.ANSWERED or (verdict.answer is None and verdict.detail)
        assert verdict.detail == "the answer was cut off" or (verdict.text in named) == (verdict.answer is not None)


async def test_such_an_engine_is_refused_at_the_start() -> None:
    with pytest.raises(UserError, match="own: the engine ignores the answer constraint"):
        await probe_constraint(FakeEngine(lambda _: "Paris"), "own")
    await probe_constraint(FakeEngine(held), "own")
