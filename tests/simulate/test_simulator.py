from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.bundle import Persona, Template
from vera_local.conversation import Message, Speaker
from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import ChatMessage, Draw, Finish, Reply, Sampling, Usage
from vera_local.simulate.simulator import Simulator, Spoken

SIGNAL = "<END OF CHAT>"
ANN = Persona("Ann", "Low", {"Name": "Ann", "Age / Sex": "{end_signal}", "Level": "Low"})
DRAW = Draw(temperature=0.8, top_p=0.9, max_tokens=50, repetition_penalty=1.2)
HISTORY = (Message(Speaker.PERSONA, "hello"), Message(Speaker.CHATBOT, "hi {Name}"))


def simulator(said: str = "hello", reply: Reply | None = None) -> Simulator:
    character = Template("You are {Name}, {Age / Sex}. Leave with {end_signal}.")
    return Simulator(FakeEngine(lambda _: reply or said), DRAW, character, "Begin.", Template("Stay."), SIGNAL)


def speak(said: str) -> Spoken:
    return asyncio.run(simulator(said).speak(ANN, HISTORY, 1))


def test_the_first_message_is_asked_for_by_the_opening() -> None:
    assert simulator().prompt(ANN, ()) == (
        ChatMessage("system", f"You are Ann, {{end_signal}}. Leave with {SIGNAL}."),
        ChatMessage("user", "Begin."),
    )


def test_the_persona_sees_itself_as_assistant_and_the_reminder_behind_the_latest_message_alone() -> None:
    later = (*HISTORY, Message(Speaker.PERSONA, "bad"), Message(Speaker.CHATBOT, "why?"))
    assert simulator().prompt(ANN, later)[1:] == (
        ChatMessage("user", "Begin."),
        ChatMessage("assistant", "hello"),
        ChatMessage("user", "hi {Name}"),
        ChatMessage("assistant", "bad"),
        ChatMessage("user", "why?\n\nStay."),
    )


@given(st.lists(st.text(), max_size=7))
def test_roles_alternate_whatever_was_said(texts: list[str]) -> None:
    history = [Message((Speaker.PERSONA, Speaker.CHATBOT)[i % 2], text) for i, text in enumerate(texts)]
    roles = [m.role for m in simulator().prompt(ANN, history)]
    assert roles == ["system", *(["user", "assistant"] * 4)[: len(texts) + 1]]


async def test_the_request_draws_as_the_role_states_with_its_own_seed() -> None:
    sim = simulator()
    await sim.speak(ANN, HISTORY, 77)
    assert isinstance(sim.engine, FakeEngine)
    (asked,) = sim.engine.requests
    assert asked.sampling == Sampling(0.8, 0.9, 50, 77, 1.2)
    assert asked.messages == sim.prompt(ANN, HISTORY)
    assert asked.pattern is None


async def test_a_message_is_stripped_of_blanks_and_comes_with_its_cost() -> None:
    usage = Usage(9, 4, 2)
    spoken = await simulator(reply=Reply("\n I am tired. ", Finish.LENGTH, usage)).speak(ANN, HISTORY, 1)
    assert spoken == Spoken("I am tired.", False, usage, cut=True)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("bye <END OF CHAT>", "bye"),
        ("<end of chat> bye", "bye"),
        ("I go <End Of Chat> now", "I go  now"),
        ("<END OF CHAT>", ""),
        ("<END OF CHAT> <end of chat>\n", ""),
        ("<END OF<END OF CHAT> CHAT>bye", "bye"),
    ],
)
def test_the_end_signal_is_heard_anywhere_and_never_kept(said: str, text: str) -> None:
    spoken = speak(said)
    assert (spoken.text, spoken.leaves) == (text, True)


@pytest.mark.parametrize("said", ["END OF CHAT", "<END OF CHAT", "<END  OF CHAT>", "the end of chat", ""])
def test_what_only_looks_like_the_end_signal_is_text(said: str) -> None:
    assert speak(said) == Spoken(said, False, Usage(speak(said).usage.prompt, 0, len(said.split())), cut=False)


PIECES = st.lists(st.sampled_from(["<", "END", " OF", " CHAT", ">", SIGNAL, SIGNAL.lower(), "a", " "]), max_size=12)


@given(PIECES.map("".join))
def test_no_text_keeps_a_signal_and_one_leaves_exactly_by_a_signal(said: str) -> None:
    spoken = speak(said)
    assert SIGNAL.casefold() not in spoken.text.casefold()
    assert spoken.leaves == (SIGNAL.casefold() in said.casefold())


@given(st.text())
def test_a_text_without_a_signal_stays_as_it_is(said: str) -> None:
    spoken = speak(said)
    assert (spoken.text, spoken.leaves) == (said.strip(), False)


@pytest.mark.parametrize("signal", [".*", "(", "[end]", "\\d"])
def test_a_signal_is_no_pattern(signal: str) -> None:
    sim = Simulator(FakeEngine(lambda _: f"8 {signal}"), DRAW, Template("x"), "Begin.", Template("Stay."), signal)
    spoken = asyncio.run(sim.speak(ANN, (), 1))
    assert (spoken.text, spoken.leaves) == ("8", True)
