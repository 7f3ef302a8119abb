"""How many tokens the conversations of a run are expected to keep. Knows no engine and no word of theirs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from vera_local.conversation import Speaker
from vera_local.engine.seam import Usage
from vera_local.run.habits import FULL_MESSAGE

PRIOR = 8
"""How many messages that expectation counts as, beside those that were seen."""


@dataclass(slots=True)
class MessageLengths:
    """The mean length of a message of each side, in tokens: first a part of their limits, then what was seen."""

    sums: dict[Speaker, float]
    counts: dict[Speaker, int]

    @classmethod
    def of(cls, limits: dict[Speaker, int]) -> MessageLengths:
        """Before anything was said: `limits` are the most tokens of a message of each side."""
        return cls({side: PRIOR * FULL_MESSAGE * limit for side, limit in limits.items()}, dict.fromkeys(limits, PRIOR))

    def saw(self, side: Speaker, tokens: int) -> None:
        """A message that was said."""
        if side in self.sums and tokens:
            self.sums[side] += tokens
            self.counts[side] += 1

    def mean(self, side: Speaker) -> float:
        """What a message of this side is expected to take; 0 for a side that writes none of its own."""
        return self.sums[side] / self.counts[side] if side in self.sums else 0.0

    def said(self, messages: int) -> int:
        """What so many messages are expected to take, both sides taking turns."""
        return round(messages / 2 * sum(self.mean(side) for side in Speaker))


@dataclass(slots=True)
class Footprint:
    """What one conversation keeps in the KV caches of the engines behind its sides, and is expected to keep at its end.

    `engines`: what the engine of each side goes by; a side that no engine of ours plays is left out. `before`: tokens
    that stand before the conversation, on the side that speaks first of these. `said`: tokens of what was said so far;
    `left`: messages to come. `whole`: the sides whose prompts hold the whole conversation. `contexts`: the most that
    the engine of each side takes in one sequence.
    """

    engines: Mapping[Speaker, Hashable]
    before: int
    said: int
    left: int
    lengths: MessageLengths
    whole: frozenset[Speaker]
    contexts: Mapping[Speaker, int]
    held: dict[Speaker, int] = field(default_factory=dict)

    def needs(self) -> dict[Hashable, int]:
        """Engine -> tokens at the end. The two sides see the history in different roles, so that one engine which
        plays both keeps it twice."""
        needs: dict[Hashable, int] = {}
        for side, engine in self.engines.items():
            needs[engine] = needs.get(engine, 0) + self._of(side)
        return needs

    def grew(self, side: Speaker, usage: Usage) -> None:
        """A message was said at this cost."""
        self.left -= 1
        self.lengths.saw(side, usage.output)
        if usage.prompt:
            self.held[side] = usage.prompt + usage.output

    def began_anew(self, messages: int) -> None:
        """So many messages are to be said again."""
        self.left += messages
        self.said = 0
        self.held.clear()

    def _of(self, side: Speaker) -> int:
        first = side is next(iter(self.engines))
        begun = (self.before if first else 0) + (self.said if side in self.whole else 0)
        to_come = self.lengths.said(self.left) if side in self.whole else 0
        return min(self.contexts[side], self.held.get(side, begun) + to_come)
