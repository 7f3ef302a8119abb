"""A persona written from notes, by a model too small for a part. Knows no rubric, and of the chatbot one message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vera_local.bundle import Persona, Template
from vera_local.conversation import Message, Speaker
from vera_local.engine.seam import ChatMessage, Draw, Engine, Request
from vera_local.simulate.fidelity import Private
from vera_local.simulate.simulator import QUOTED_SEED, Spoken, in_language, read


@dataclass(frozen=True, slots=True)
class NotedSimulator:
    """`instruction` is the system prompt, `examples` show pairs of notes and the message made of them, `notes` say what
    the persona's messages are about: the first one the first, and so on, from the start again after the last.

    Such a model copies whatever stands near its answer. So the chatbot's latest message stands in the system prompt,
    far from it, and what the persona has said already is left out.
    """

    engine: Engine
    draw: Draw
    instruction: Template
    examples: tuple[tuple[str, str], ...]
    notes: tuple[Template, ...]
    end_signal: str

    async def speak(self, persona: Persona, history: Sequence[Message], seed: int) -> Spoken:
        """The persona's next message; raises an EngineError where the model gave none."""
        request = Request(self.prompt(persona, history), self.draw.seeded(seed))
        return read(await self.engine.generate(request), self.end_signal)

    def prompt(self, persona: Persona, history: Sequence[Message]) -> tuple[ChatMessage, ...]:
        """The instruction, the examples and the notes whose turn it is."""
        values = {**persona.fields, "end_signal": self.end_signal}
        said = sum(m.speaker is Speaker.PERSONA for m in history)
        return (
            ChatMessage("system", self.instruction.render({**values, "reply": history[-1].text if history else ""})),
            *(m for notes, text in self.examples for m in (ChatMessage("user", notes), ChatMessage("assistant", text))),
            ChatMessage("user", in_language(self.notes[said % len(self.notes)].render(values), persona)),
        )

    def private(self, persona: Persona) -> tuple[Private, ...]:
        """What a message must not quote: the examples are of other people; its notes it is made of."""
        return tuple(Private(text, QUOTED_SEED) for _, text in self.examples)
