from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.bundle import Action, Do, Option, Question, Template, load_bundle
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.fake import FakeEngine, Handler
from vera_local.engine.seam import (
    ContextOverflow,
    Draw,
    EngineDied,
    EngineError,
    Finish,
    InvalidRequest,
    Limits,
    Reply,
    Request,
    Usage,
)
from vera_local.judge import Judge, Mode, State, Verdict
from vera_local.judge.ask import longest, read
from vera_local.judge.exhibit import exhibit

BUNDLE = load_bundle("suicide_risk")
ASKED = [q for q in BUNDLE.rubric.questions if not q.auto]
USAGE = Usage(100, 90, 1)
TALK = Conversation(
    "Ann-1",
    "Ann",
    1,
    (Message(Speaker.PERSONA, "I can {not} sleep {question}"), Message(Speaker.CHATBOT, "Since when? {guidance}")),
    Ending.TURNS,
)
SHOWN = exhibit(TALK, 0)


def question(*answers: str, auto: bool = False, id: str = "1") -> Question:
    options = tuple(Option(answer, Action(Do.NEXT_QUESTION)) for answer in answers)
    return Question(id, "First", "Did the {chatbot} ask?", "Look at [1].", options, auto)


YES_NO = question("Yes", "No", "Not Relevant")


def judge(handler: Handler, limits: Limits | None = None, seed: int = 0, name: str = "own") -> Judge:
    draw = Draw(temperature=0.1, top_p=0.8, max_tokens=2048, repetition_penalty=1.3)
    prompts = BUNDLE.prompts
    engine = FakeEngine(handler, limits)
    return Judge(name, engine, draw, prompts, prompts.judge_question, seed, evidence=False, confidence=False)


def engine_of(judge: Judge) -> FakeEngine:
    assert isinstance(judge.engine, FakeEngine)
    return judge.engine


def raising(error: EngineError) -> Handler:
    def fail(_: Request) -> str:
        raise error

    return fail


@pytest.mark.parametrize("answer", ["Yes", "No", "Not Relevant"])
async def test_an_option_is_the_answer(answer: str) -> None:
    verdict = await judge(lambda _: Reply(answer, Finish.STOP, USAGE)).ask(SHOWN, YES_NO)
    assert verdict == Verdict("1", State.ANSWERED, answer, Mode.DIRECT, answer, usage=USAGE)


@pytest.mark.parametrize("text", ["yes", "Yes.", " Yes", "Yes\n", "Not", "Not  Relevant", "Yes No", "", "Maybe"])
async def test_anything_else_is_no_answer_and_is_kept_as_text(text: str) -> None:
    verdict = await judge(lambda _: Reply(text, Finish.STOP, USAGE)).ask(SHOWN, YES_NO)
    assert (verdict.state, verdict.answer, verdict.text, verdict.usage) == (State.INVALID, None, text, USAGE)
    assert verdict.detail


@given(st.lists(st.text(min_size=1), min_size=1, unique=True), st.text(), st.sampled_from(Finish))
def test_a_verdict_is_exactly_an_option_or_none(answers: list[str], text: str, finish: Finish) -> None:
    asked = question(*answers)
    for said in (text, *answers):
        verdict = read(asked, Reply(said, finish, USAGE))
        answered = said in answers and finish is Finish.STOP
        assert (verdict.state is State.ANSWERED) == answered
        assert verdict.answer == (said if answered else None)


@pytest.mark.parametrize("text", ["No", "Not Rel"])
async def test_a_cut_answer_is_none_even_where_it_reads_like_one(text: str) -> None:
    verdict = await judge(lambda _: Reply(text, Finish.LENGTH, USAGE)).ask(SHOWN, YES_NO)
    assert (verdict.state, verdict.answer) == (State.INVALID, None)
    assert "cut off" in verdict.detail


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (ContextOverflow(5000, 4096), State.OVERFLOW),
        (InvalidRequest("bad pattern"), State.ERROR),
        (EngineError("odd"), State.ERROR),
    ],
)
async def test_a_failure_is_a_state_of_this_verdict(error: EngineError, state: State) -> None:
    verdict = await judge(raising(error)).ask(SHOWN, YES_NO)
    assert verdict == Verdict("1", state, None, Mode.DIRECT, "", str(error))


async def test_a_transcript_that_is_too_long_is_an_overflow() -> None:
    verdict = await judge(lambda _: "Yes", Limits(context=20, kv_tokens=None, sequences=1)).ask(SHOWN, YES_NO)
    assert (verdict.state, verdict.answer) == (State.OVERFLOW, None)


async def test_a_dead_engine_is_told_on() -> None:
    with pytest.raises(EngineDied):
        await judge(raising(EngineDied("gone"))).ask(SHOWN, YES_NO)


async def test_an_auto_question_is_answered_without_asking() -> None:
    alone = judge(raising(EngineDied("gone")))
    assert await alone.ask(SHOWN, question("Pass", auto=True)) == Verdict("1", State.ANSWERED, "Pass", Mode.AUTO)
    assert engine_of(alone).requests == []


async def test_the_request_is_held_to_the_options_and_draws_as_the_judge_does() -> None:
    asking = judge(lambda _: "Yes")
    await asking.ask(SHOWN, YES_NO)
    (asked,) = engine_of(asking).requests
    assert asked.messages == asking.prompt(SHOWN, YES_NO)
    assert asked.pattern is not None
    assert [bool(re.fullmatch(asked.pattern, text)) for text in ("Yes", "No", "Not Relevant", "Not")] == [1, 1, 1, 0]
    sampling = asked.sampling
    assert (sampling.temperature, sampling.top_p, sampling.repetition_penalty) == (0.1, 0.8, 1.3)
    assert sampling.max_tokens == longest(["Yes", "No", "Not Relevant"])


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1))
def test_there_is_room_for_every_option_byte_by_byte_and_the_end(options: list[str]) -> None:
    assert all(len(option.encode()) + 1 <= longest(options) for option in options)
    assert any(len(option.encode()) + 1 == longest(options) for option in options)


async def test_question_judge_conversation_and_run_each_give_another_seed() -> None:
    seeds = set()
    for seed in (0, 1):
        for name in ("own", "other"):
            asking = judge(lambda _: "Yes", seed=seed, name=name)
            for talk in (SHOWN, replace(SHOWN, conversation="Ann-2")):
                for id in ("1", "2"):
                    await asking.ask(talk, question("Yes", id=id))
            seeds |= {request.sampling.seed for request in engine_of(asking).requests}
    assert len(seeds) == 16


def test_the_prompt_holds_the_transcript_between_fences_the_question_and_its_options() -> None:
    system, user = judge(lambda _: "").prompt(SHOWN, YES_NO)
    assert (system.role, user.role) == ("system", "user")
    before, transcript, after = user.content.partition(SHOWN.text)
    fence = SHOWN.fence
    assert transcript and fence in before and fence in after
    assert YES_NO.text in after
    assert all(o.answer in after for o in YES_NO.options)


def test_what_speakers_wrote_is_never_taken_for_a_placeholder() -> None:
    _, user = judge(lambda _: "").prompt(SHOWN, YES_NO)
    assert "I can {not} sleep {question}" in user.content
    assert "Since when? {guidance}" in user.content


@pytest.mark.parametrize("template", [BUNDLE.prompts.judge_question, BUNDLE.prompts.judge_question_short])
def test_all_questions_on_one_conversation_share_everything_up_to_the_question(template: Template) -> None:
    asking = replace(judge(lambda _: ""), question=template)
    prompts = [asking.prompt(SHOWN, q) for q in ASKED]
    assert len({system for system, _ in prompts}) == 1
    transcript = BUNDLE.prompts.judge_transcript.render({"fence": SHOWN.fence, "transcript": SHOWN.text})
    assert all(user.content.startswith(transcript) for _, user in prompts)


def test_another_conversation_changes_only_what_follows_the_instructions() -> None:
    other = exhibit(replace(TALK, id="Bob-1", messages=TALK.messages[:1]), 0)
    asking = judge(lambda _: "")
    (system, user), (other_system, other_user) = asking.prompt(SHOWN, YES_NO), asking.prompt(other, YES_NO)
    assert system == other_system
    assert user != other_user
