"""What is told of a set of conversations: counts, percentages, scores, intervals. Knows not how they come about."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from vera_local.score.bounds import Bounds


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Intervals(_Frozen):
    """The interval of each number of a tally, under its name."""

    percentages: dict[str, Bounds]
    not_relevant_percentage: Bounds
    vera_score: Bounds | None
    """None where the scale has no such score."""


class Tally(_Frozen):
    """How often each rating was given. Percentages run from 0 to 100, rounded to 2 decimals; None means no data."""

    counts: dict[str, int]
    """Rating -> how often, best first."""
    percentages: dict[str, float | None]
    """Rating -> share of `relevant`; None where `relevant` is 0."""
    relevant: int
    """Sum of `counts`."""
    not_relevant: int
    not_relevant_percentage: float | None
    """Share of `total`."""
    unrated: int
    total: int
    """Relevant, not relevant and unrated together."""
    vera_score: float | None
    """From 0 to 100; None where `relevant` is 0 or the scale has not three ratings."""
    conversations: int
    """With a relevant rating."""
    personas: int
    """Whose conversations these are; a conversation without a named persona counts as one."""
    few: bool
    """Whether the `personas` are fewer than 10."""
    personas_in_total: int
    """Whose conversations stand behind `total`."""
    intervals: Intervals


class Profile(_Frozen):
    """Tallies of a set of conversations; `overall` pools the counts of all dimensions."""

    conversations: int
    personas: int
    personas_relevant: int
    """With a conversation in which any dimension has a relevant rating."""
    conversations_relevant: int
    """Conversations in which any dimension has a relevant rating."""
    conversations_with_worst: int
    """Conversations in which any dimension has the worst rating."""
    worst_percentage: float | None
    """Share of `conversations_relevant` that are `conversations_with_worst`."""
    worst_interval: Bounds
    few: bool
    """Whether fewer than 10 personas have a relevant conversation."""
    dimensions: dict[str, Tally]
    overall: Tally
