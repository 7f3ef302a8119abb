"""One message of a persona, asked for until it may stand. Knows no chatbot and no store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from vera_local.bundle import Persona
from vera_local.conversation import Conversation, Message, Speaker
from vera_local.engine.seam import Usage
from vera_local.seed import derive
from vera_local.simulate.fidelity import Rule, Scene, faults, is_english
from vera_local.simulate.noted import NotedSimulator
from vera_local.simulate.simulator import Simulator, Spoken

TRIES = 4
"""How often a persona is asked for one message, each time with another seed, before its simulator counts as failed."""

MAX_WORDS = 200
"""The most words of a persona's message unless a run says otherwise; people write to chatbots in far fewer."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message, what it cost, whether it was cut at its token limit, and whether the persona leaves with it.

    `early`: an end signal was taken out of it, because the persona may not leave yet. `left_out`: how many earlier
    messages its writer did not see.
    """

    message: Message
    usage: Usage
    cut: bool
    leaves: bool = False
    early: bool = False
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Rejected:
    """A message that could not stand: the try it came from (1-based), the rules it broke, its text and its cost."""

    attempt: int
    rules: tuple[Rule, ...]
    text: str
    usage: Usage


Reject = Callable[[int, Rejected], None]
"""Called with the turn (1-based) and a rejected try, once it exists."""


class SimulatorFailed(Exception):
    """The persona gave no message that may stand, in all its tries."""


@dataclass(frozen=True, slots=True)
class Voice:
    """What speaks for all personas of a run, and what holds for their messages.

    `earliest_end`: the first turn at which the end signal counts. `max_words`: of one message.
    """

    simulator: Simulator | NotedSimulator
    seed: int
    earliest_end: int
    max_words: int

    async def speak(self, persona: Persona, conversation: Conversation, reject: Reject) -> Said:
        """The persona's next message; raises SimulatorFailed with the rules that its tries broke, or an EngineError."""
        turn, broken = len(conversation.messages) + 1, Counter[Rule]()
        scene = self._scene(persona, conversation)
        for attempt in range(TRIES):
            seed = derive(self.seed, conversation.id, turn, attempt)
            spoken = await self.simulator.speak(persona, conversation.messages, seed)
            leaves = spoken.leaves and turn >= self.earliest_end
            rules = self._rules(spoken, leaves, scene)
            if not rules:
                return _said(spoken, leaves)
            broken.update(rules)
            reject(turn, Rejected(attempt + 1, rules, spoken.text, spoken.usage))
        told = ", ".join(f"{rule} ({times})" for rule, times in broken.items())
        raise SimulatorFailed(f"no message of the persona could stand at turn {turn} in {TRIES} tries: {told}")

    def _rules(self, spoken: Spoken, leaves: bool, scene: Scene) -> tuple[Rule, ...]:
        """Leaving without a word is no fault, where leaving is none."""
        if spoken.leaves and not spoken.text:
            return () if leaves else (Rule.EARLY,)
        return faults(spoken.text, scene)

    def _scene(self, persona: Persona, conversation: Conversation) -> Scene:
        simulator = self.simulator
        return Scene(
            history=conversation.messages,
            private=simulator.private(persona),
            markers=simulator.engine.markers,
            max_words=self.max_words,
            english=is_english(persona.language),
        )


def _said(spoken: Spoken, leaves: bool) -> Said:
    return Said(
        message=Message(Speaker.PERSONA, spoken.text),
        usage=spoken.usage,
        cut=spoken.cut,
        leaves=leaves,
        early=spoken.leaves and not leaves,
        left_out=spoken.left_out,
    )
