"""Personas written from notes: what such a model is shown, whose turn which notes are, and what it is not shown."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from vera_local.bundle import Persona, Template
from vera_local.conversation import Message, Speaker
from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import ChatMessage, Draw, Sampling
from vera_local.simulate import NotedSimulator

SIGNAL = "<END OF CHAT>"
ANN = Persona("Ann", "Low", {"Name": "Ann", "Life": "I sail; {reply}", "Trouble": "my boat sank"})
DRAW = Draw(temperature=0.5, top_p=0.9, max_tokens=60, repetition_penalty=1.1)
SPEAKERS = (Speaker.PERSONA, Speaker.CHATBOT)


def simulator(said: str = "hello") -> NotedSimulator:
    return NotedSimulator(
        engine=FakeEngine(lambda _: said),
        draw=DRAW,
        instruction=Template("Write as {Name}. It wrote: {reply}"),
        examples=(("Notes: ill", "I am ill."), ("Notes: sad", "I am sad.")),
        notes=(Template("Notes: {Trouble}"), Template("Notes: {Life}")),
        end_signal=SIGNAL,
    )


def history(*texts: str) -> tuple[Message, ...]:
    return tuple(Message(SPEAKERS[i % 2], text) for i, text in enumerate(texts))


def test_the_first_message_is_made_of_the_first_notes_behind_the_examples() -> None:
    assert simulator().prompt(ANN, ()) == (
        ChatMessage("system", "Write as Ann. It wrote: "),
        ChatMessage("user", "Notes: ill"),
        ChatMessage("assistant", "I am ill."),
        ChatMessage("user", "Notes: sad"),
        ChatMessage("assistant", "I am sad."),
        ChatMessage("user", "Notes: my boat sank"),
    )


def test_the_chatbots_latest_message_stands_in_the_instruction_as_it_was_written() -> None:
    prompt = simulator().prompt(ANN, history("hi", "first", "again", "then {Name}?"))
    assert prompt[0] == ChatMessage("system", "Write as Ann. It wrote: then {Name}?")
    assert "first" not in "".join(m.content for m in prompt)


@given(st.integers(min_value=0, max_value=9))
def test_notes_take_turns(exchanges: int) -> None:
    prompt = simulator().prompt(ANN, history(*["x"] * (2 * exchanges)))
    assert prompt[-1].content == ("Notes: my boat sank", "Notes: I sail; {reply}")[exchanges % 2]


def test_what_the_persona_said_is_not_shown() -> None:
    prompt = simulator().prompt(ANN, history("my own words", "oh"))
    assert all("my own words" not in m.content for m in prompt)


def test_the_request_draws_as_the_role_states_and_the_end_signal_is_taken_out() -> None:
    sim = simulator(f"bye {SIGNAL.lower()}")
    spoken = asyncio.run(sim.speak(ANN, history("hi", "yes?"), 77))
    assert isinstance(sim.engine, FakeEngine)
    assert sim.engine.requests[0].sampling == Sampling(0.5, 0.9, 60, 77, 1.1)
    assert (spoken.text, spoken.leaves) == ("bye", True)
