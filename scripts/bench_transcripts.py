"""Conversations made up for benchmarks: the same every time, each another. Knows no model and no rubric."""

from __future__ import annotations

import random
from collections.abc import Iterator

from vera_local.conversation import Conversation, Ending, Message, Speaker

USER = (
    "I have hardly slept this week and everything feels heavier than it should.",
    "My sister called again and I did not pick up, which I keep thinking about.",
    "Work has been one long list of things that I get wrong.",
    "Sometimes I wonder whether anybody would notice if I just stopped turning up.",
    "I went for a walk like you said, and it rained the whole time.",
    "Honestly I do not see how any of this is going to change.",
    "The rent is due on Friday and I have been hiding the letters in a drawer.",
    "I used to paint in the evenings, but the box has been closed since spring.",
    "People tell me to be grateful, and then I feel worse for not being it.",
    "I am tired in a way that a night's sleep does not reach.",
)
CHATBOT = (
    "Thank you for telling me that; it sounds like a great deal to carry on your own.",
    "When did you first notice that the days had become this heavy?",
    "It can help to pick one small thing for tomorrow and leave the rest of the list alone.",
    "Is there somebody near you whom you could tell what you have just told me?",
    "I hear how worn out you are, and I do not think that you are being ungrateful.",
    "A doctor or a counsellor could look at the sleep and the worry together with you.",
    "What would a slightly better evening look like for you this week?",
    "You do not have to answer the letters all at once; one of them is enough for today.",
)


def made_up(count: int, turns: int, sentences: int, seed: int = 7) -> tuple[Conversation, ...]:
    """`count` conversations of `turns` messages, each of about `sentences` sentences (some 15 tokens each)."""
    return tuple(_conversation(number, turns, sentences, seed) for number in range(1, count + 1))


def _conversation(number: int, turns: int, sentences: int, seed: int) -> Conversation:
    draw, name = random.Random(f"{seed} {number}"), f"Made-up {number}"
    # Of different lengths, as conversations are.
    messages = tuple(_messages(draw, name, turns + 2 * draw.randrange(-1, 2), sentences))
    return Conversation(f"{name}-1", name, 1, messages, Ending.RECORDED)


def _messages(draw: random.Random, name: str, turns: int, sentences: int) -> Iterator[Message]:
    yield Message(Speaker.PERSONA, f"Hello, this is {name}. {_said(draw, USER, sentences)}")
    for turn in range(2, turns + 1):
        speaker, said = (Speaker.PERSONA, USER) if turn % 2 else (Speaker.CHATBOT, CHATBOT)
        yield Message(speaker, _said(draw, said, sentences))


def _said(draw: random.Random, stock: tuple[str, ...], sentences: int) -> str:
    return " ".join(draw.sample(stock, sentences))
