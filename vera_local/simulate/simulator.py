"""The model that plays a persona. Knows no rubric, and of the chatbot only what it wrote."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from vera_local.bundle import Persona, Template
from vera_local.conversation import Message, Speaker
from vera_local.engine.seam import ChatMessage, Draw, Engine, Finish, Reply, Request, Usage
from vera_local.engine.window import Context, generate_within
from vera_local.simulate.fidelity import Private

QUOTED_SEED, QUOTED_PROMPT = 8, 12
"""Words in a row from which a message quotes its persona's seed phrase, or anything else of the instructions, which
also hold the plain facts of a life that anybody may tell."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A persona's message without its end signal, whether it gave one, what it cost, whether it was cut off, and how
    many earlier messages its writer did not see."""

    text: str
    leaves: bool
    usage: Usage
    cut: bool
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Simulator:
    """`character` describes the persona to the model; `opening` asks for the first message; `reminder` is added to the
    chatbot's latest message when it is sent, behind it or around {message}, and is never stored.

    The model sees the persona as "assistant" and the chatbot as "user". Where the persona speaks first, the opening
    request stays in the history: it is the user message that templates want before the persona's own first one.
    """

    engine: Engine
    draw: Draw
    character: Template
    opening: str
    reminder: Template
    end_signal: str
    context: Context = Context.STOP

    async def speak(self, persona: Persona, history: Sequence[Message], seed: int) -> Spoken:
        """The persona's next message; raises an EngineError where the model gave none."""
        request = Request(self.prompt(persona, history), self.draw.seeded(seed))
        # The system prompt and the first message stay, and the request for it where the persona wrote it.
        head = 2 if _chatbot_began(history) else 3
        reply, left_out = await generate_within(self.engine, request, self.context, head)
        return replace(read(reply, self.end_signal), left_out=left_out)

    def prompt(self, persona: Persona, history: Sequence[Message]) -> tuple[ChatMessage, ...]:
        """The history from the persona's side."""
        opening = () if _chatbot_began(history) else (ChatMessage("user", self.opening),)
        seen = [*opening, *(_seen_by_persona(m) for m in history)]
        if history:
            seen[-1] = ChatMessage(seen[-1].role, self._reminded(seen[-1].content))
        seen[-1] = ChatMessage(seen[-1].role, in_language(seen[-1].content, persona))
        return (ChatMessage("system", in_language(self._character(persona), persona)), *seen)

    def private(self, persona: Persona) -> tuple[Private, ...]:
        """What a message must not quote."""
        seed = (Private(persona.seed, QUOTED_SEED),) if persona.seed else ()
        reminder = self.reminder.render({"message": ""})
        return (*seed, Private(self._character(persona), QUOTED_PROMPT), Private(reminder, QUOTED_PROMPT))

    def _character(self, persona: Persona) -> str:
        return _rendered(self.character, (*persona.fields.items(), ("end_signal", self.end_signal)))

    def _reminded(self, message: str) -> str:
        rendered = self.reminder.render({"message": message})
        return rendered if "message" in self.reminder.placeholders else f"{message}\n\n{rendered}"


@lru_cache(maxsize=256)  # Long, and wanted twice for each message.
def _rendered(character: Template, values: tuple[tuple[str, str], ...]) -> str:
    return character.render(dict(values))


def in_language(text: str, persona: Persona) -> str:
    """A prompt, ending with the language that the persona writes where it has one."""
    return text if persona.language is None else f"{text}\n\n(Write in this language: {persona.language})"


def read(reply: Reply, end_signal: str) -> Spoken:
    """What a persona said, without the end signal."""
    text = _without(reply.text, end_signal)
    leaves = text != reply.text
    if not leaves:
        # The same characters can be written as other code points.
        composed = unicodedata.normalize("NFC", reply.text)
        text = _without(composed, unicodedata.normalize("NFC", end_signal))
        leaves = text != composed
    return Spoken((text if leaves else reply.text).strip(), leaves, reply.usage, reply.finish is Finish.LENGTH)


def _without(text: str, signal: str) -> str:
    pattern = re.compile(re.escape(signal), re.IGNORECASE)
    # Again and again, because what stands around a removed signal can make another one.
    while pattern.search(text):
        text = pattern.sub("", text)
    return text


def _chatbot_began(history: Sequence[Message]) -> bool:
    return bool(history) and history[0].speaker is Speaker.CHATBOT


def _seen_by_persona(message: Message) -> ChatMessage:
    return ChatMessage("assistant" if message.speaker is Speaker.PERSONA else "user", message.text)
