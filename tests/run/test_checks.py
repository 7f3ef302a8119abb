"""What is tried of a judge at the start of judging: what stops a run, and what is only said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.fake import FakeEngine, Handler
from vera_local.engine.folder import ROLE_DEFAULTS
from vera_local.engine.probe import OPTIONS
from vera_local.engine.profile import Template
from vera_local.engine.seam import EngineDied, Finish, InvalidRequest, Limits, Reply, Request, Usage
from vera_local.errors import UserError
from vera_local.judge import Judge, Mode
from vera_local.run import Plan, Watcher, run
from vera_local.run.checks import TooLong, asked, check_judges, longest_planned
from vera_local.run.judging import make_judge
from vera_local.run.seats import Seat

MakePlan = Callable[..., Plan]
QWEN = Template(system_role=True, thinking="switch", thinking_switch="enable_thinking", reasoning_parser="qwen3")


def good(request: Request) -> str:
    if request.pattern is not None:
        return OPTIONS[0]
    return "Hm. </think> Paris" if request.thinking else "Paris"


def but(change: Callable[[Request], str | Reply | None]) -> Handler:
    """A good engine but for what `change` gives."""

    def handle(request: Request) -> str | Reply:
        changed = change(request)
        return good(request) if changed is None else changed

    return handle


def refuse(*roles: str) -> Handler:
    def change(request: Request) -> None:
        if [m.role for m in request.messages] == list(roles):
            raise InvalidRequest("not with me")

    return but(change)


@pytest.fixture
def seat(make: MakePlan) -> Seat:
    (own,) = make().judges
    profile = own.player.profile.model_copy(update={"template": QWEN})
    return replace(own, player=replace(own.player, profile=profile))


async def said(handler: Handler, *seats: Seat) -> list[str]:
    heard: list[str] = []
    await check_judges(FakeEngine(handler), seats, heard.append)
    return heard


async def test_a_good_judge_is_tried_in_silence(seat: Seat) -> None:
    assert await said(good, seat, replace(seat, mode=Mode.THINK)) == []


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        (but(lambda r: "Paris" if r.pattern else None), "ignores the answer constraint"),
        (refuse("system", "user"), "refuses a system message"),
        (refuse("system", "user", "assistant", "user"), "refuses a history"),
    ],
)
async def test_what_would_make_every_verdict_wrong_stops_the_run(seat: Seat, handler: Handler, told: str) -> None:
    with pytest.raises(UserError, match=told):
        await said(handler, seat)


async def test_a_history_is_not_needed_where_no_evidence_is_asked_for(seat: Seat) -> None:
    assert await said(refuse("system", "user", "assistant", "user"), replace(seat, evidence=False)) == []


async def test_a_judge_that_always_reasons_is_said_and_used(seat: Seat) -> None:
    (told,) = await said(but(lambda r: "Hm. </think> Paris" if r.stop else None), seat)
    assert told.startswith("Warning: ") and "reasons although it was not let" in told


async def test_thinking_that_does_not_end_is_said_and_used(seat: Seat) -> None:
    endless = but(lambda r: Reply("Hm", Finish.LENGTH, Usage()) if r.thinking else None)
    (told,) = await said(endless, replace(seat, mode=Mode.THINK))
    assert "did not end within" in told and "max_tokens" in told
    assert await said(endless, seat) == [], "it does not think in that mode"


async def test_probabilities_that_cannot_be_read_are_said_where_they_are_wanted(seat: Seat) -> None:
    def blind(request: Request) -> None:
        if request.labels:
            raise InvalidRequest("no label reads")

    (told,) = await said(but(blind), seat)
    assert "verdicts have no confidence" in told and "--no-confidence" in told
    assert await said(but(blind), replace(seat, confidence=False)) == []


async def test_a_lost_engine_is_no_warning(seat: Seat) -> None:
    def die(request: Request) -> None:
        if request.labels:
            raise EngineDied("gone")

    with pytest.raises(EngineDied):
        await said(but(die), seat)


def talk(words: int) -> Conversation:
    messages = (Message(Speaker.PERSONA, "hi"), Message(Speaker.CHATBOT, "word " * words))
    return Conversation(f"Ann-{words}", "Ann", 1, messages, Ending.TURNS)


async def told(judge: Judge, plan: Plan, conversations: Sequence[Conversation]) -> list[str]:
    heard: list[str] = []
    lengths, rubric = TooLong(heard.append), plan.bundle.rubric
    for conversation in conversations:
        await lengths.of(judge, await judge.look(conversation, rubric.questions), rubric)
    lengths.say_all(len(conversations))
    return heard


async def overflow(plan: Plan, lengths: tuple[int, ...]) -> list[str]:
    engine = FakeEngine(good, Limits(context=3000, kv_tokens=None, sequences=4))
    return await told(make_judge(plan, plan.judges[0], engine), plan, [talk(n) for n in lengths])


async def test_the_first_conversation_that_is_too_long_is_told_with_the_remedy_and_all_are_counted(
    make: MakePlan,
) -> None:
    first, all_ = await overflow(make(), (10, 4000, 5000))
    assert "a conversation does not fit the context" in first and "--judge-window" in first
    assert "2 of 3 conversations did not fit the context" in all_
    assert len(await overflow(make(), (10, 4000))) == 1
    assert await overflow(make(), (10, 100)) == []


async def test_with_the_window_nothing_is_too_long(make: MakePlan) -> None:
    long = Conversation(
        "Ann-1", "Ann", 1, tuple(Message(list(Speaker)[i % 2], "word " * 900) for i in range(8)), Ending.TURNS
    )
    plan = make()
    judge = make_judge(plan, plan.judges[0], FakeEngine(good, Limits(context=5000, kv_tokens=None, sequences=4)))
    assert await told(replace(judge, window=True), plan, [long]) == []
    assert len(await told(judge, plan, [long])) == 1


async def test_a_host_that_counts_nothing_says_nothing(make: MakePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*messages: Any, **how: Any) -> int:
        raise InvalidRequest("no counting")

    monkeypatch.setattr(FakeEngine, "count_tokens", refuse)
    assert await overflow(make(), (5000,)) == []


async def test_the_longest_conversation_planned_grows_with_turns_and_what_roles_may_write(make: MakePlan) -> None:
    async def longest(**flags: Any) -> int:
        plan = make(**flags)
        return await longest_planned(make_judge(plan, plan.judges[0], FakeEngine(good)), plan)

    plan = make()
    written = sum(player.draw.max_tokens for player in plan.speakers)
    assert await longest(turns=8) - await longest(turns=4) == 2 * written
    scripted = make(bundle="psychosis", personas=2, turns=2)
    opening = max((p.opening or "" for p in scripted.personas), key=len)
    judge = make_judge(scripted, scripted.judges[0], FakeEngine(good))
    (chatbot,) = scripted.speakers
    assert await longest_planned(judge, scripted) > chatbot.draw.max_tokens + len(opening.split())


async def test_a_chatbot_of_which_nobody_said_how_much_it_writes_is_taken_for_a_usual_one(make: MakePlan) -> None:
    async def longest(**told: Any) -> int:
        plan = make(chatbot={"kind": "openai", "model": "m", "url": "http://127.0.0.1:9/v1", **told})
        return await longest_planned(make_judge(plan, plan.judges[0], FakeEngine(good)), plan)

    assert await longest(max_tokens=900) - await longest() == 2 * (900 - ROLE_DEFAULTS.chatbot.max_tokens)


def test_questions_with_one_option_are_not_asked(make: MakePlan) -> None:
    rubric = make().bundle.rubric
    assert {q.auto for q in asked(rubric)} == {False}
    assert len(asked(rubric)) < len(rubric.questions)


async def test_a_run_says_which_conversations_will_overflow(
    make: MakePlan, answering: Callable[..., Any], watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(watcher, "say", heard.append)

    def long_winded(request: Request) -> str:
        return OPTIONS[0] if request.pattern else "word " * 3000

    opener = answering(long_winded, Limits(context=1400, kv_tokens=None, sequences=9))
    await run(make(bundle="psychosis", turns=2), opener, watcher)
    assert sum("a conversation does not fit" in line for line in heard) == 1
    assert sum("4 of 4 conversations did not fit" in line for line in heard) == 1


async def test_a_window_that_nothing_can_measure_is_said(seat: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    windowed = replace(seat, window=True, confidence=False)
    assert await said(good, windowed) == []

    async def tried(seat: Seat) -> list[str]:
        heard: list[str] = []
        await check_judges(NoCount(good), [seat], heard.append)
        return heard

    (told,) = await tried(windowed)
    assert "counts no tokens (no counting)" in told and "--judge-window does nothing" in told
    assert await tried(replace(windowed, window=False)) == []


class NoCount(FakeEngine):
    """A server that answers and counts nothing."""

    async def count_tokens(self, messages: Any, *, thinking: bool = False) -> int:
        raise InvalidRequest("no counting")

    async def generate(self, request: Request) -> Reply:
        answer = good(request)
        return Reply(answer, Finish.STOP, Usage())
