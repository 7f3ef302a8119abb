"""A chatbot made of an open-weight model and a system prompt. Knows no persona and no rubric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vera_local.chatbot.protocol import STUB, Answer
from vera_local.conversation import Conversation, Message, Speaker
from vera_local.engine.seam import ChatMessage, Draw, Engine, Finish, Request
from vera_local.engine.window import Context, generate_within


@dataclass(frozen=True, slots=True)
class LocalChatbot:
    """Sees the user as "user" and itself as "assistant"; an empty system prompt is not sent.

    It is its own session, since a model remembers nothing; the engine belongs to whoever opened it.
    """

    engine: Engine
    draw: Draw
    system_prompt: str
    context: Context = Context.STOP

    @property
    def remembers(self) -> bool:
        return False

    @property
    def places(self) -> int | None:
        return None

    async def check(self) -> None:
        return None

    async def open(self, conversation: Conversation, seed: int) -> LocalChatbot:
        return self

    async def reply(self, history: Sequence[Message], seed: int) -> Answer:
        request = Request(self.prompt(history), self.draw.seeded(seed))
        # The system prompt and the first message stay.
        head = bool(self.system_prompt) + (2 if history[0] == STUB else 1)
        reply, left_out = await generate_within(self.engine, request, self.context, head)
        return Answer(reply.text, reply.usage, reply.finish is Finish.LENGTH, left_out)

    async def aclose(self) -> None:
        return None

    def prompt(self, history: Sequence[Message]) -> tuple[ChatMessage, ...]:
        """The history in the words of chat templates."""
        system = (ChatMessage("system", self.system_prompt),) if self.system_prompt else ()
        return (*system, *(seen_by_chatbot(m) for m in history))


def seen_by_chatbot(message: Message) -> ChatMessage:
    """A message with the role that a chatbot knows its speaker by."""
    return ChatMessage("user" if message.speaker is Speaker.PERSONA else "assistant", message.text)
