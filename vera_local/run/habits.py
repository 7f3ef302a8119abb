"""How speakers and judges usually behave, assumed or seen in a run. Knows no engine, no time and no GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from vera_local.bundle import Option, Question, Rubric
from vera_local.bundle.paths import PerAnswer, any_path
from vera_local.chatbot import External, OpenAISettings
from vera_local.engine.folder import ROLE_DEFAULTS
from vera_local.run.players import Player
from vera_local.run.seats import Seat

FULL_MESSAGE = 0.5
"""The expected length of a message or of reasoning, as a part of its token limit: all stop before it."""


@dataclass(frozen=True, slots=True)
class Habits:
    """What was seen of them; what was not is assumed.

    `persona` and `chatbot`: mean tokens of a message, the first by model; `held`: the part of the planned messages that
    were said; `reasoning`: judge -> mean tokens of its reasons; `answers`: judge -> (question, answer) -> how often.
    """

    persona: Mapping[str, float] = field(default_factory=dict)
    chatbot: float | None = None
    held: float = 1.0
    reasoning: Mapping[str, float] = field(default_factory=dict)
    answers: Mapping[str, Mapping[tuple[str, str], int]] = field(default_factory=dict)

    def persona_tokens(self, player: Player) -> int:
        """Tokens of a persona's message."""
        return round(self.persona.get(player.profile.name, FULL_MESSAGE * player.draw.max_tokens))

    def chatbot_tokens(self, chatbot: Player | External) -> int:
        """Tokens of a chatbot's message."""
        return round(FULL_MESSAGE * longest_reply(chatbot) if self.chatbot is None else self.chatbot)

    def reasoning_tokens(self, seat: Seat) -> int:
        """Tokens that a judge writes before it answers."""
        return round(self.reasoning.get(seat.judge, FULL_MESSAGE * seat.budget)) if seat.budget else 0

    def shares(self, seat: Seat, rubric: Rubric) -> PerAnswer:
        """How probable each answer of a judge is: as often as it was seen, or such that every path is."""
        seen, unseen = self.answers.get(seat.judge, {}), any_path(rubric)

        def share(question: Question, option: Option) -> float:
            asked = sum(seen.get((question.id, o.answer), 0) for o in question.options)
            return seen.get((question.id, option.answer), 0) / asked if asked else unseen(question, option)

        return share

    def told(self) -> Iterator[str]:
        """What is assumed, in sentences."""
        part = f"{FULL_MESSAGE:.0%}"
        if not self.persona and self.chatbot is None:
            yield f"Messages, and what a judge writes before it answers, take {part} of their token limits."
            yield "Every conversation has all its messages, and every persona's message stands at the first try."
        if not self.answers:
            yield "Every path through the rubric is equally likely, so most are long; the range is over all of them."


ASSUMED = Habits()


def longest_reply(chatbot: Player | External) -> int:
    """In tokens; what another's chatbot may write is not known, so that of our own models stands for it."""
    if isinstance(chatbot, Player):
        return chatbot.draw.max_tokens
    told = chatbot.max_tokens if isinstance(chatbot, OpenAISettings) else None
    return told or ROLE_DEFAULTS.chatbot.max_tokens
