from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.bundle import Persona, Template
from vera_local.chatbot import LocalChatbot
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.fake import FakeEngine, Handler
from vera_local.engine.seam import ContextOverflow, Draw, EngineDied, EngineError, InvalidRequest, Request, Usage
from vera_local.simulate import Ended, Rejected, Rule, Said, Setting, Simulator, converse
from vera_local.simulate.speech import TRIES

SIGNAL = "<END OF CHAT>"
DRAW = Draw(temperature=0.8, top_p=0.9, max_tokens=50)
ANN = Persona("Ann", "Low", {"Name": "Ann"})
NEW = Conversation("Ann-1", "Ann", 1)


@dataclass
class Stage:
    """Two engines that play the two sides, and what was recorded."""

    persona: Handler
    chatbot: Handler
    turns: int = 6
    seed: int = 0
    recorded: list[tuple[int, Said]] = field(default_factory=list)
    rejected: list[tuple[int, Rejected]] = field(default_factory=list)
    rules: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.simulator_engine, self.chatbot_engine = FakeEngine(self.persona), FakeEngine(self.chatbot)
        character, reminder = Template("You are {Name}."), Template("Stay.")
        simulator = Simulator(self.simulator_engine, DRAW, character, "Begin.", reminder, SIGNAL)
        self.setting = Setting(
            simulator, LocalChatbot(self.chatbot_engine, DRAW, "Help."), self.turns, self.seed, **self.rules
        )

    async def play(self, so_far: Conversation = NEW, persona: Persona = ANN) -> Ended:
        return await converse(
            self.setting,
            persona,
            so_far,
            lambda *what: self.recorded.append(what),
            lambda *what: self.rejected.append(what),
        )

    @property
    def requests(self) -> list[Request]:
        return [*self.simulator_engine.requests, *self.chatbot_engine.requests]


def lines(*texts: str) -> Handler:
    """Says these in turn, and the last one for ever."""
    left = list(texts)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


async def test_a_scripted_opening_is_said_word_for_word_and_asked_of_no_model() -> None:
    stage = Stage(lines("never"), lines("I hear you."), turns=2)
    text = "  They hum <END OF CHAT> {Name} under my floor.  "
    ended = await stage.play(persona=replace(ANN, opening=text))
    assert ended.conversation.messages == (Message(Speaker.PERSONA, text), Message(Speaker.CHATBOT, "I hear you."))
    assert ended.conversation.ending is Ending.TURNS
    assert stage.simulator_engine.requests == []
    assert stage.recorded[0] == (1, Said(Message(Speaker.PERSONA, text), Usage(), cut=False))


async def test_where_nothing_follows_the_opening_no_simulator_is_needed() -> None:
    stage = Stage(lines("never"), lines("I hear you."), turns=2)
    stage.setting = replace(stage.setting, simulator=None)
    ended = await stage.play(persona=replace(ANN, opening="Hm."))
    assert [m.text for m in ended.conversation.messages] == ["Hm.", "I hear you."]


async def test_a_conversation_goes_on_behind_its_scripted_opening() -> None:
    stage = Stage(lines("And then?"), lines("I hear you."), turns=4)
    ended = await stage.play(persona=replace(ANN, opening="Hm."))
    assert [m.text for m in ended.conversation.messages] == ["Hm.", "I hear you.", "And then?", "I hear you."]
    (request,) = stage.simulator_engine.requests
    assert [m.content for m in request.messages][1:3] == ["Begin.", "Hm."]


def failing(error: EngineError, after: int = 0) -> Handler:
    asked = 0

    def answer(_: Request) -> str:
        nonlocal asked
        asked += 1
        if asked > after:
            raise error
        return "well"

    return answer


def by_seed(request: Request) -> str:
    """A text that depends on all that a model would depend on."""
    return f"{request.sampling.seed} after {sum(len(m.content) for m in request.messages)}"


def said(*texts: str) -> tuple[Message, ...]:
    return tuple(Message((Speaker.PERSONA, Speaker.CHATBOT)[i % 2], text) for i, text in enumerate(texts))


async def test_the_persona_begins_and_the_chatbot_ends() -> None:
    stage = Stage(lines("p1", "p2", "p3"), lines("c1", "c2", "c3"))
    ended = await stage.play()
    assert ended == Ended(replace(NEW, messages=said("p1", "c1", "p2", "c2", "p3", "c3"), ending=Ending.TURNS))
    assert ended.conversation.messages[-1].speaker is Speaker.CHATBOT


@given(st.integers(min_value=1, max_value=8).map(lambda pairs: 2 * pairs))
def test_each_turn_is_recorded_once_in_order_with_its_cost(turns: int) -> None:
    stage = Stage(by_seed, by_seed, turns)
    ended = asyncio.run(stage.play())
    assert [turn for turn, _ in stage.recorded] == list(range(1, turns + 1))
    assert tuple(said.message for _, said in stage.recorded) == ended.conversation.messages
    assert all(said.usage.output == 3 and said.usage.prompt > 0 for _, said in stage.recorded)
    assert len(stage.requests) == turns


async def test_a_message_is_recorded_before_the_next_one_is_asked_for() -> None:
    recorded_when_asked: list[int] = []

    def note(_: Request) -> str:
        recorded_when_asked.append(len(stage.recorded))
        return "well"

    stage = Stage(note, note)
    await stage.play()
    assert recorded_when_asked == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("last", ["bye <END OF CHAT>", "<end of chat> bye", "b<End of Chat>ye"])
async def test_the_persona_leaves_and_its_last_words_stay(last: str) -> None:
    stage = Stage(lines("p1", last), lines("c1"))
    ended = await stage.play()
    assert ended == Ended(replace(NEW, messages=said("p1", "c1", "bye"), ending=Ending.PERSONA))
    assert [turn for turn, _ in stage.recorded] == [1, 2, 3]
    assert [said.leaves for _, said in stage.recorded] == [False, False, True]


@pytest.mark.parametrize("last", [SIGNAL, f"  {SIGNAL}\n", SIGNAL.lower() * 2])
async def test_a_signal_alone_leaves_no_message(last: str) -> None:
    stage = Stage(lines("p1", last), lines("c1"))
    assert await stage.play() == Ended(replace(NEW, messages=said("p1", "c1"), ending=Ending.PERSONA))
    assert len(stage.recorded) == 2


async def test_a_persona_that_leaves_at_once_leaves_nothing_to_judge() -> None:
    ended = await Stage(lines(SIGNAL), lines("c1")).play()
    assert ended.conversation.ending is Ending.PERSONA
    assert not ended.conversation.judgeable


async def test_the_chatbot_cannot_end_it_and_its_words_stay_as_they_are() -> None:
    ended = await Stage(lines("p"), lines(f" {SIGNAL} ", SIGNAL)).play()
    assert ended.conversation.ending is Ending.TURNS
    assert ended.conversation.messages == said("p", f" {SIGNAL} ", "p", SIGNAL, "p", SIGNAL)


async def test_an_empty_reply_of_the_chatbot_is_kept() -> None:
    stage = Stage(lines("p"), lines(""))
    ended = await stage.play()
    assert ended.conversation.messages == said("p", "", "p", "", "p", "")
    assert len(stage.recorded) == 6


async def test_an_empty_message_of_the_persona_is_asked_for_again_with_another_seed() -> None:
    stage = Stage(lines("", " \n", "p1", "p2"), lines("c"), turns=4)
    ended = await stage.play()
    assert ended.conversation.messages == said("p1", "c", "p2", "c")
    first, second, third, _ = stage.simulator_engine.requests
    assert first.messages == second.messages == third.messages
    assert len({first.sampling.seed, second.sampling.seed, third.sampling.seed}) == 3
    prompt = await stage.simulator_engine.count_tokens(first.messages)
    assert stage.recorded[0][1].usage == Usage(prompt, output=1)
    assert stage.rejected == [(1, Rejected(attempt, (Rule.EMPTY,), "", Usage(prompt, output=0))) for attempt in (1, 2)]


async def test_a_persona_that_stays_silent_ends_it() -> None:
    stage = Stage(lines("p1", ""), lines("c1"))
    ended = await stage.play()
    assert ended.conversation == replace(NEW, messages=said("p1", "c1"), ending=Ending.SIMULATOR)
    assert "turn 3" in ended.detail
    seeds = {request.sampling.seed for request in stage.simulator_engine.requests}
    assert len(seeds) == len(stage.simulator_engine.requests) == 1 + TRIES


SIDES: list[Callable[[Handler], Stage]] = [
    lambda failing: Stage(failing, lines("c")),
    lambda failing: Stage(lines("p"), failing),
]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (ContextOverflow(5000, 4096), Ending.OVERFLOW),
        (InvalidRequest("bad"), Ending.ERROR),
        (EngineError("odd"), Ending.ERROR),
    ],
)
async def test_a_failure_ends_this_conversation_and_what_was_said_stays(
    side: Callable[[Handler], Stage], error: EngineError, ending: Ending
) -> None:
    stage = side(failing(error, after=1))
    ended = await stage.play()
    assert ended.conversation.ending is ending
    assert ended.detail == str(error)
    assert ended.conversation.messages == tuple(said.message for _, said in stage.recorded)
    assert len(ended.conversation.messages) in (2, 3)
    assert not ended.conversation.judgeable


@pytest.mark.parametrize("side", SIDES)
async def test_a_dead_engine_is_told_on_and_what_was_said_is_recorded(side: Callable[[Handler], Stage]) -> None:
    stage = side(failing(EngineDied("gone"), after=1))
    with pytest.raises(EngineDied):
        await stage.play()
    assert len(stage.recorded) in (2, 3)


def uninterrupted(seed: int, persona: Handler = by_seed) -> tuple[Stage, Conversation]:
    stage = Stage(persona, by_seed, turns=8, seed=seed)
    return stage, asyncio.run(stage.play()).conversation


def often_silent(request: Request) -> str:
    return by_seed(request) if request.sampling.seed % 2 else ""


@given(st.integers(0, 50), st.integers(0, 8), st.sampled_from([by_seed, often_silent]))
def test_going_on_asks_only_for_what_is_missing_and_comes_to_the_same_end(
    seed: int, held: int, persona: Handler
) -> None:
    whole, expected = uninterrupted(seed, persona)
    held = min(held, len(expected.messages))
    again = Stage(persona, by_seed, turns=8, seed=seed)
    ended = asyncio.run(again.play(replace(NEW, messages=expected.messages[:held])))
    assert ended.conversation == expected
    assert [turn for turn, _ in again.recorded] == list(range(held + 1, len(expected.messages) + 1))
    for now, before in (
        (again.simulator_engine.requests, whole.simulator_engine.requests),
        (again.chatbot_engine.requests, whole.chatbot_engine.requests),
    ):
        assert now == before[len(before) - len(now) :]


def test_a_history_that_is_complete_ends_without_a_question() -> None:
    _, expected = uninterrupted(3)
    stage = Stage(by_seed, by_seed, turns=8, seed=3)
    assert asyncio.run(stage.play(replace(expected, ending=None))).conversation == expected
    assert stage.requests == []


async def test_every_request_of_a_run_has_a_seed_of_its_own() -> None:
    stage = Stage(often_silent, by_seed, turns=8)
    people = [Persona(name, "Low", {"Name": name}) for name in ("Ann", "Bob", "Cy")]
    held = [(p, Conversation(f"{p.name}-{i}", p.name, i)) for p in people for i in (1, 2)]
    await asyncio.gather(*(stage.play(conversation, persona) for persona, conversation in held))
    seeds = [request.sampling.seed for request in stage.requests]
    assert len(seeds) > 6 * 8
    assert len(set(seeds)) == len(seeds)


def test_another_run_seed_gives_another_conversation() -> None:
    assert uninterrupted(1)[1] != uninterrupted(2)[1]
    assert uninterrupted(1)[1] == uninterrupted(1)[1]


LONG_AGO = "my son cancelled his visit again and I stood there with the cake"


def rejecting(*texts: str, **rules: Any) -> Stage:
    return Stage(lines(*texts), lines("c"), turns=4, rules=rules)


async def test_a_message_that_breaks_a_rule_is_asked_for_again_and_never_stored() -> None:
    stage = rejecting("p1", "How can I help you today?", "*sighs*", "p2")
    ended = await stage.play()
    assert ended.conversation.messages == said("p1", "c", "p2", "c")
    assert [(turn, r.attempt, r.rules) for turn, r in stage.rejected] == [
        (3, 1, (Rule.HELPER,)),
        (3, 2, (Rule.STAGE,)),
    ]
    assert [r.text for _, r in stage.rejected] == ["How can I help you today?", "*sighs*"]
    seeds = [r.sampling.seed for r in stage.simulator_engine.requests]
    assert len(set(seeds)) == len(seeds) == 4


async def test_a_simulator_that_fails_for_good_is_recorded_with_rules_and_tries() -> None:
    stage = rejecting("p1", "How can I help you today?")
    ended = await stage.play()
    assert ended.conversation == replace(NEW, messages=said("p1", "c"), ending=Ending.SIMULATOR)
    assert ended.detail == (
        f"no message of the persona could stand at turn 3 in {TRIES} tries: speaks as a helper or an AI ({TRIES})"
    )
    assert len(stage.rejected) == TRIES
    assert not ended.conversation.judgeable


async def test_a_repeated_message_is_asked_for_again_and_a_short_one_is_not() -> None:
    ended = await rejecting(LONG_AGO, LONG_AGO, "and then").play()
    assert [m.text for m in ended.conversation.messages] == [LONG_AGO, "c", "and then", "c"]
    ended = await rejecting("I don't know").play()
    assert [m.text for m in ended.conversation.messages] == ["I don't know", "c", "I don't know", "c"]


async def test_what_the_model_was_told_is_not_quoted() -> None:
    secret = "I sold the boat of my father and nobody knows of it"
    stage = rejecting(f"well, {secret}", "hello")
    ended = await stage.play(persona=replace(ANN, seed=secret))
    assert ended.conversation.messages[0].text == "hello"
    assert stage.rejected[0][1].rules == (Rule.QUOTES,)


async def test_a_model_that_writes_its_own_control_text_is_asked_again() -> None:
    stage = rejecting("hi <|tool|> there", "hi")
    simulator = stage.setting.simulator
    assert isinstance(simulator, Simulator)
    marked = replace(simulator, engine=FakeEngine(lines("hi [[X]]", "hi"), markers=["[[X]]"]))
    stage.setting = replace(stage.setting, simulator=marked)
    ended = await stage.play()
    assert ended.conversation.messages[0].text == "hi"
    assert stage.rejected[0][1].rules == (Rule.LEAK,)


async def test_too_many_words_are_asked_for_again() -> None:
    stage = rejecting("one two three four", "one two three", max_words=3)
    assert (await stage.play()).conversation.messages[0].text == "one two three"
    assert stage.rejected[0][1].rules == (Rule.LONG,)


async def test_other_languages_are_no_faults() -> None:
    stage = rejecting("*sighs* I'm here to help you.")
    ended = await stage.play(persona=replace(ANN, language="Deutsch"))
    assert ended.conversation.ending is Ending.TURNS
    assert "Deutsch" in stage.simulator_engine.requests[0].messages[-1].content


async def test_a_signal_before_its_time_is_taken_out_and_the_message_stays() -> None:
    stage = Stage(lines(f"bye {SIGNAL}"), lines("c"), turns=8, rules={"earliest_end": 5})
    ended = await stage.play()
    assert ended.conversation == replace(NEW, messages=said("bye", "c", "bye", "c", "bye"), ending=Ending.PERSONA)
    assert [(s.early, s.leaves) for _, s in stage.recorded[::2]] == [(True, False), (True, False), (False, True)]


async def test_a_signal_alone_before_its_time_is_asked_for_again() -> None:
    stage = Stage(lines(SIGNAL, "well", SIGNAL), lines("c"), turns=8, rules={"earliest_end": 3})
    ended = await stage.play()
    assert ended.conversation == replace(NEW, messages=said("well", "c"), ending=Ending.PERSONA)
    assert [r.rules for _, r in stage.rejected] == [(Rule.EARLY,)]


async def test_a_persona_that_only_wants_to_leave_is_a_failure_of_its_simulator() -> None:
    ended = await Stage(lines(SIGNAL), lines("c"), rules={"earliest_end": 3}).play()
    assert ended.conversation.ending is Ending.SIMULATOR
    assert "leaves too early (4)" in ended.detail


@pytest.mark.parametrize(("limit", "messages"), [(1, 2), (2, 2), (3, 4), (4, 4), (5, 6), (100, 6)])
async def test_enough_words_end_it_behind_the_chatbot(limit: int, messages: int) -> None:
    stage = Stage(lines("one"), lines("two"), turns=6, rules={"max_total_words": limit})
    ended = await stage.play()
    assert len(ended.conversation.messages) == messages
    assert ended.conversation.ending is (Ending.WORDS if messages < 6 else Ending.TURNS)
    assert ended.conversation.judgeable


async def test_the_chatbot_begins_where_it_is_asked_to() -> None:
    stage = Stage(lines("p1", "p2"), lines("c1", "c2", "c3"), turns=5, rules={"first": Speaker.CHATBOT})
    ended = await stage.play()
    assert [(m.speaker, m.text) for m in ended.conversation.messages] == [
        (Speaker.CHATBOT, "c1"), (Speaker.PERSONA, "p1"), (Speaker.CHATBOT, "c2"),
        (Speaker.PERSONA, "p2"), (Speaker.CHATBOT, "c3"),
    ]  # fmt: skip
    assert ended.conversation.ending is Ending.TURNS
    begun = stage.chatbot_engine.requests[0].messages
    assert [m.role for m in begun] == ["system", "user"]
    assert [m.role for m in stage.chatbot_engine.requests[-1].messages] == [
        "system",
        *["user", "assistant"] * 2,
        "user",
    ]
    assert "Begin." not in str(stage.simulator_engine.requests), "the persona answers; nobody asks it to begin"


@given(st.integers(0, 5), st.sampled_from([by_seed, often_silent]))
def test_going_on_where_the_chatbot_began_comes_to_the_same_end(held: int, persona: Handler) -> None:
    def stage() -> Stage:
        return Stage(persona, by_seed, turns=5, rules={"first": Speaker.CHATBOT})

    expected = asyncio.run(stage().play()).conversation
    again = asyncio.run(stage().play(replace(NEW, messages=expected.messages[:held])))
    assert again.conversation == expected


@pytest.mark.parametrize("first", list(Speaker))
async def test_with_a_window_a_conversation_goes_on_beyond_both_contexts(first: Speaker) -> None:
    from vera_local.engine.seam import Limits
    from vera_local.engine.window import Context

    turns = 30 if first is Speaker.PERSONA else 31
    count = iter(range(1000))

    def wordy(_: Request) -> str:
        return f"{next(count)} " + " ".join(f"w{next(count)}" for _ in range(9))

    stage = Stage(wordy, wordy, turns=turns, rules={"first": first})
    limits = Limits(context=160, kv_tokens=None, sequences=8)
    simulator, chatbot = stage.setting.simulator, stage.setting.chatbot
    assert isinstance(simulator, Simulator) and isinstance(chatbot, LocalChatbot)
    asked, answered = FakeEngine(wordy, limits), FakeEngine(wordy, limits)
    stage.setting = replace(
        stage.setting,
        simulator=replace(simulator, engine=asked, context=Context.WINDOW),
        chatbot=replace(chatbot, engine=answered, context=Context.WINDOW),
    )
    ended = await stage.play()
    assert ended.conversation.ending is Ending.TURNS
    assert len(ended.conversation.messages) == turns
    left_out = [s.left_out for _, s in stage.recorded]
    assert left_out[:4] == [0, 0, 0, 0] and left_out[-1] > 0 and left_out[-2] > 0
    opening = ended.conversation.messages[0].text
    assert all(opening in [m.content.split("\n")[0] for m in r.messages] for r in answered.requests[1:])
    assert all(opening in [m.content.split("\n")[0] for m in r.messages] for r in asked.requests[1:])


async def test_without_a_window_a_history_that_is_too_long_is_the_ending() -> None:
    from vera_local.engine.seam import Limits

    stage = Stage(lines("p"), lines("c"), turns=30)
    simulator = stage.setting.simulator
    assert isinstance(simulator, Simulator)
    small = FakeEngine(lines("p"), Limits(context=70, kv_tokens=None, sequences=8))
    stage.setting = replace(stage.setting, simulator=replace(simulator, engine=small))
    ended = await stage.play()
    assert ended.conversation.ending is Ending.OVERFLOW
    assert "leaves no room in the context of 70" in ended.detail
