"""A conversation as a reader found it, and the words for who speaks. Knows no format."""

from __future__ import annotations

from dataclasses import dataclass

from vera_local.conversation import Conversation, Speaker
from vera_local.errors import UserError

SPEAKERS = {
    "persona": Speaker.PERSONA,
    "user": Speaker.PERSONA,
    "chatbot": Speaker.CHATBOT,
    "agent": Speaker.CHATBOT,
    "assistant": Speaker.CHATBOT,
    "provider": Speaker.CHATBOT,
}
"""What files call the two sides."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A conversation, and what a reader of its file should look at: sentences that name file and line."""

    conversation: Conversation
    notes: tuple[str, ...] = ()


def speaker_of(word: str, place: str) -> Speaker:
    """Who `word` means; UserError, naming `place`, where it is none of SPEAKERS."""
    try:
        return SPEAKERS[word.strip().lower()]
    except KeyError:
        raise UserError(f"{place}: '{word}' is no speaker; write one of: {', '.join(SPEAKERS)}.") from None
