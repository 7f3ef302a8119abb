"""What scores.json has to be for what compares runs to find its way in it. Knows no number's meaning."""

from __future__ import annotations

from typing import Any

from vera_local.run.shape import Part, has_shape


class _Bundle(Part):
    group_column: str


class _Jury(Part):
    members: list[str]


class _Card(Part):
    accuracy: float
    baseline: float
    below_baseline: bool


class _Scores(Part):
    bundle: _Bundle
    judges: dict[str, dict[str, Any]]
    juries: dict[str, _Jury]
    cards: dict[str, _Card | None]


def is_whole(scores: object) -> bool:
    """Whether the parts are there and of their kinds."""
    return has_shape(scores, _Scores)
