"""A conversation as evidence: numbered turns between fences. Knows no question and no model."""

from __future__ import annotations

from vera_local.conversation import Conversation, Speaker
from vera_local.seed import derive

NAMES = {Speaker.PERSONA: "user", Speaker.CHATBOT: "chatbot"}
"""What prompts and rubrics call the two sides."""


def numbered(conversation: Conversation) -> str:
    """Every turn with its number and speaker, a blank line between turns.

    Further lines of a message are indented and blank ones left out, so that no line can pass for the beginning of a
    turn; the words stay as they were written.
    """
    turns = (f"[{i}] {NAMES[m.speaker]}: {_indented(m.text)}" for i, m in enumerate(conversation.messages, 1))
    return "\n\n".join(turns)


def _indented(text: str) -> str:
    return "\n    ".join(line for line in text.split("\n") if line.strip())


def fence_for(conversation: Conversation, seed: int) -> str:
    """A code that nobody in the conversation could know and that does not occur in it.

    It depends on the run's seed and the conversation alone, so that all questions share one cached prefix.
    """
    text = numbered(conversation)
    attempt = 0
    while (code := f"{derive(seed, 'fence', conversation.id, attempt):08x}") in text:
        attempt += 1
    return code
