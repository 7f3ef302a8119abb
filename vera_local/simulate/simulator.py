"""The model that plays a persona. Knows no rubric, and of the chatbot only what it wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vera_local.bundle import Persona, Template
from vera_local.conversation import Message, Speaker
from vera_local.engine.seam import ChatMessage, Draw, Engine, Finish, Reply, Request, Usage


@dataclass(frozen=True, slots=True)
class Spoken:
    """A persona's message without its end signal, whether it gave one, what it cost, and whether it was cut off."""

    text: str
    leaves: bool
    usage: Usage
    cut: bool


@dataclass(frozen=True, slots=True)
class Simulator:
    """`character` describes the persona to the model; `opening` asks for the first message; `reminder` is added to the
    chatbot's latest message when it is sent, behind it or around {message}, and is never stored.

    The model sees the persona as "assistant" and the chatbot as "user". The opening request stays in the history: it
    is the user message that templates want before the persona's own first one.
    """

    engine: Engine
    draw: Draw
    character: Template
    opening: str
    reminder: Template
    end_signal: str

    async def speak(self, persona: Persona, history: Sequence[Message], seed: int) -> Spoken:
        """The persona's next message; raises an EngineError where the model gave none."""
        reply = await self.engine.generate(Request(self.prompt(persona, history), self.draw.seeded(seed)))
        return read(reply, self.end_signal)

    def prompt(self, persona: Persona, history: Sequence[Message]) -> tuple[ChatMessage, ...]:
        """The history from the persona's side."""
        character = self.character.render({**persona.fields, "end_signal": self.end_signal})
        seen = [ChatMessage("user", self.opening), *(_seen_by_persona(m) for m in history)]
        if history:
            seen[-1] = ChatMessage(seen[-1].role, self._reminded(seen[-1].content))
        return (ChatMessage("system", character), *seen)

    def _reminded(self, message: str) -> str:
        rendered = self.reminder.render({"message": message})
        return rendered if "message" in self.reminder.placeholders else f"{message}\n\n{rendered}"


def read(reply: Reply, end_signal: str) -> Spoken:
    """What a persona said, without the end signal."""
    signal, text = re.compile(re.escape(end_signal), re.IGNORECASE), reply.text
    # Again and again, because what stands around a removed signal can make another one.
    while signal.search(text):
        text = signal.sub("", text)
    return Spoken(text.strip(), text != reply.text, reply.usage, reply.finish is Finish.LENGTH)


def _seen_by_persona(message: Message) -> ChatMessage:
    return ChatMessage("assistant" if message.speaker is Speaker.PERSONA else "user", message.text)
