"""Message, Conversation and its Head: the types everything shares. Knows no persona, no model and no rubric."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Speaker(StrEnum):
    """Who wrote a message."""

    PERSONA = "persona"
    CHATBOT = "chatbot"


class Ending(StrEnum):
    """How a conversation ended."""

    TURNS = "turns"
    """The set number of turns was reached."""
    PERSONA = "persona"
    """The persona gave its end signal."""
    WORDS = "words"
    """The set number of words of both sides was reached."""
    RECORDED = "recorded"
    """It was held elsewhere; its record does not say how it ended."""
    OVERFLOW = "overflow"
    """The history no longer fits a model's context; what was said before stays."""
    SIMULATOR = "simulator"
    """The simulator gave no usable message, in all its tries."""
    CHATBOT = "chatbot"
    """The chatbot failed for good; what it answered before stays."""
    ERROR = "error"
    """An engine failed for good."""


JUDGEABLE = frozenset({Ending.TURNS, Ending.PERSONA, Ending.WORDS, Ending.RECORDED})
"""Endings after which a conversation is evidence about the chatbot."""

RETRIED = frozenset({Ending.CHATBOT, Ending.ERROR})
"""Endings of which the same run, begun again, makes a new attempt."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn: who spoke and the text as written, unstripped."""

    speaker: Speaker
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages in order, turn 1 first; `ending` is None while it goes on."""

    id: str
    persona: str
    repeat: int
    messages: tuple[Message, ...] = ()
    ending: Ending | None = None

    @property
    def judgeable(self) -> bool:
        """Whether it ended in a way that says something about the chatbot, and holds a chatbot message."""
        return self.ending in JUDGEABLE and any(m.speaker is Speaker.CHATBOT for m in self.messages)

    @property
    def head(self) -> Head:
        """What there is to know of it without a word of it."""
        by_chatbot = sum(m.speaker is Speaker.CHATBOT for m in self.messages)
        characters = sum(len(m.text) for m in self.messages)
        return Head(self.id, self.persona, self.repeat, self.ending, len(self.messages), by_chatbot, characters)


class Head(NamedTuple):
    """A conversation without its texts: its messages, those of the chatbot, and the characters of all together."""

    id: str
    persona: str
    repeat: int
    ending: Ending | None
    turns: int
    by_chatbot: int
    characters: int

    @property
    def judgeable(self) -> bool:
        """Whether it ended in a way that says something about the chatbot, and holds a chatbot message."""
        return self.ending in JUDGEABLE and self.by_chatbot > 0

    @property
    def unfinished(self) -> bool:
        """Whether the run, gone on with, says more in it."""
        return self.ending is None or self.ending in RETRIED

    @property
    def persona_spoke(self) -> bool:
        """Whether it holds a message of the persona."""
        return self.turns > self.by_chatbot
