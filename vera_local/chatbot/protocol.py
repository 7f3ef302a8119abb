"""The system under test, seen from outside. Knows no persona: it is told what the user wrote and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from vera_local.conversation import Conversation, Message, Speaker
from vera_local.engine.seam import NO_USAGE, EngineDied, Usage

STUB = Message(Speaker.PERSONA, "(A user has opened the chat.)")
"""What a chatbot that speaks first is shown before its first message: services and chat templates want a user's
message first. It is never stored."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a chatbot wrote, as it came, what it cost where that is known, whether it was cut at a token limit, and how
    many earlier messages were kept from it for want of room."""

    text: str
    usage: Usage = NO_USAGE
    cut: bool = False
    left_out: int = 0


class ChatbotFailed(Exception):
    """A conversation got no reply and will get none; the message tells the cause in one sentence."""


class ChatbotOverflow(ChatbotFailed):
    """The history no longer fits what the chatbot can read."""


class ChatbotLost(ChatbotFailed):
    """The chatbot no longer knows this conversation, of which it remembered the beginning; it may well know others."""


class ChatbotDown(EngineDied):
    """One conversation after the other got no reply: the chatbot is gone, and with it the run that tests it."""


class Session(Protocol):
    """One conversation with a chatbot."""

    async def reply(self, history: Sequence[Message], seed: int) -> Answer:
        """The answer to the last message of a history that ends with the user's.

        Raises ChatbotFailed or an EngineError where there is none: a text that tells of an error is no answer.
        """
        ...

    async def aclose(self) -> None:
        """End the conversation on the chatbot's side; never raises on account of the chatbot."""
        ...


class Chatbot(Protocol):
    """What is tested. Every conversation is a session of its own and sees nothing of any other."""

    @property
    def remembers(self) -> bool:
        """Whether a session holds the history on the chatbot's side, so that no other session can go on with it."""
        ...

    @property
    def places(self) -> int | None:
        """How many sessions may be open at once; None: any number."""
        ...

    async def check(self) -> None:
        """Find what can be found wrong before a conversation begins; raises UserError."""
        ...

    async def open(self, conversation: Conversation, seed: int) -> Session:
        """Begin a conversation, or go on with one; raises ChatbotFailed."""
        ...

    async def aclose(self) -> None:
        """Let go of all that the chatbot holds on this machine."""
        ...
