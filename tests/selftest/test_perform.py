"""A self-test put to judges on a fake engine, from the request to the card's numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from tests.selftest.small import RUBRIC, SUITE
from vera_local.bundle import load_bundle
from vera_local.engine.admission import Admission, Room
from vera_local.engine.fake import FakeEngine, Handler
from vera_local.engine.seam import Draw, EngineDied, EngineError, Limits, Request
from vera_local.judge import Judge, Mode, Verdict
from vera_local.selftest import Answered, marks, perform, sittings
from vera_local.selftest.askings import Variant

PLANNED = sittings(RUBRIC, SUITE, repeats=2)
RIGHT = {(case.id, q): answer for case in SUITE.cases for q, answer in case.expect.items()}
KEYED = {(entry.case.id, q): answer for entry in SUITE.master_on for q, answer in entry.expect.items()}

Ask = Callable[[str, str, str], str]
"""Case, question and the whole prompt -> what the model writes."""


def judge(engine: FakeEngine, mode: Mode = Mode.DIRECT, **how: Any) -> Judge:
    prompts = load_bundle("suicide_risk").prompts
    draw = Draw(temperature=0.1, top_p=1.0, max_tokens=50)
    return Judge("own", engine, draw, prompts, prompts.judge_question, 0, mode, **how)


def model(ask: Ask) -> Handler:
    def handle(request: Request) -> str:
        prompt = "\n".join(m.content for m in request.messages)
        if "Which turns" in request.messages[-1].content:
            return "2"
        case, question = re.search(r"I am (\w+)\.", prompt), re.search(r"Question (\d)\?", prompt)
        assert case and question
        return ask(case[1], question[1], prompt)

    return handle


def right(case: str, question: str, prompt: str) -> str:
    keyed = f"Reply to {case}." not in prompt
    return (KEYED if keyed else RIGHT)[case, question]


def room(engine: FakeEngine) -> Callable[[int], AbstractAsyncContextManager[object]]:
    admission = Admission({"own": [Room.of(engine.limits)]})
    return lambda tokens: admission.hold({"own": tokens})


async def performed(engine: FakeEngine, **how: Any) -> tuple[Answered, ...]:
    heard: list[Verdict] = []
    answers = await perform(judge(engine, **how), PLANNED, room(engine), heard.append)
    assert [a.asking for a in answers] == [a for s in PLANNED for a in s.askings]
    assert len(heard) == len(answers)
    return answers


async def numbers(ask: Ask, **how: Any) -> dict[str, Any]:
    return marks(await performed(FakeEngine(model(ask)), **how))


async def test_a_perfect_judge_is_right_and_nothing_turns_it() -> None:
    its = await numbers(right)
    assert (its["overall"].right, its["overall"].n) == (8, 8)
    assert (its["attacked"].count, its["attacked"].n) == (0, 8)
    assert its["reversed"].count == 0
    assert its["repeated"].share == 1
    assert {key: s.share for key, s in its["master_keys"].items()} == {":": 1, "Solution": 1}
    assert (its["evidence"].count, its["evidence"].n) == (1, 2), "it names turn 2 for calm, too, where turn 1 tells"
    assert its["sureness"].mass == 1


async def test_a_constant_judge_is_at_the_baseline() -> None:
    its = await numbers(lambda case, question, prompt: {"1": "Yes", "2": "No", "3": "Low"}[question])
    assert its["overall"].accuracy == its["overall"].baseline == 5 / 8
    assert its["below_baseline"]


async def test_an_obedient_judge_follows_what_the_chatbot_wrote() -> None:
    def obey(case: str, question: str, prompt: str) -> str:
        order = re.search(r"JUDGE, WRITE (\w+)", prompt)
        return order[1] if order else right(case, question, prompt)

    its = await numbers(obey)
    assert its["overall"].accuracy == 1
    assert {form: (s.count, s.n) for form, s in its["attacks"].items()} == {"order": (4, 4), "praise": (0, 4)}


async def test_a_judge_that_takes_what_is_listed_first_changes_with_the_order() -> None:
    def first(case: str, question: str, prompt: str) -> str:
        listed = re.findall(r"^- (\w+)$", prompt, re.MULTILINE)
        return str(listed[0])

    its = await numbers(first)
    assert (its["reversed"].count, its["reversed"].n) == (8, 8)


async def test_answers_that_are_no_options_are_missing_and_wrong() -> None:
    its = await numbers(lambda case, question, prompt: "Perhaps")
    assert its["missing"] == {"invalid": 36}
    assert its["overall"].right == 0
    assert its["below_baseline"]


async def test_only_plain_askings_are_looked_at_for_evidence_and_doubt() -> None:
    answers = await performed(FakeEngine(model(right)))
    assert {a.asking.variant for a in answers if a.verdict.confidence is not None} == {Variant.PLAIN}
    assert {a.asking.variant for a in answers if a.verdict.evidence is not None} == {Variant.PLAIN}


async def test_a_repeat_draws_anew_on_the_same_prompt() -> None:
    engine = FakeEngine(model(right))
    answers = await perform(judge(engine), PLANNED[:1], room(engine), lambda verdict: None)
    asked = [r for r in engine.requests if not r.labels and "Which turns" not in r.messages[-1].content]
    assert len(asked) == len(answers) == 9
    for plain, repeat, reverse in zip(asked[::3], asked[1::3], asked[2::3], strict=True):
        assert plain.messages == repeat.messages != reverse.messages
        assert plain.sampling.seed != repeat.sampling.seed
        assert plain.sampling.seed == reverse.sampling.seed


async def test_one_transcript_at_a_time_where_the_cache_holds_no_more() -> None:
    engine = FakeEngine(model(right), Limits(context=10_000, kv_tokens=100, sequences=8))
    await performed(engine, confidence=False)
    assert engine.peak == 1
    roomy = FakeEngine(model(right), Limits(context=10_000, kv_tokens=None, sequences=8))
    await performed(roomy, confidence=False)
    assert roomy.peak == 8


async def test_reasons_come_before_the_answer_in_that_mode() -> None:
    answers = await performed(FakeEngine(lambda r: "Weighed. Answer:" if r.stop else model(right)(r)), mode=Mode.REASON)
    assert {a.verdict.mode for a in answers} == {Mode.REASON}
    assert marks(answers)["overall"].accuracy == 1


async def test_a_failed_request_is_a_missing_answer_and_a_lost_engine_ends_all() -> None:
    def fail(error: EngineError) -> Handler:
        def handle(request: Request) -> str:
            raise error

        return handle

    assert marks(await performed(FakeEngine(fail(EngineError("busy")))))["missing"] == {"error": 36}
    with pytest.raises(ExceptionGroup) as caught:
        await performed(FakeEngine(fail(EngineDied("gone"))))
    assert caught.group_contains(EngineDied, match="gone")
