"""A chatbot made of an open-weight model and a system prompt. Knows no persona and no rubric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vera_local.conversation import Message, Speaker
from vera_local.engine.seam import ChatMessage, Draw, Engine, Reply, Request


@dataclass(frozen=True, slots=True)
class LocalChatbot:
    """Sees the user as "user" and itself as "assistant"; an empty system prompt is not sent."""

    engine: Engine
    draw: Draw
    system_prompt: str

    async def reply(self, history: Sequence[Message], seed: int) -> Reply:
        return await self.engine.generate(Request(self.prompt(history), self.draw.seeded(seed)))

    def prompt(self, history: Sequence[Message]) -> tuple[ChatMessage, ...]:
        """The history in the words of chat templates."""
        system = (ChatMessage("system", self.system_prompt),) if self.system_prompt else ()
        return (*system, *(_seen_by_chatbot(m) for m in history))


def _seen_by_chatbot(message: Message) -> ChatMessage:
    return ChatMessage("user" if message.speaker is Speaker.PERSONA else "assistant", message.text)
