"""What scores.json has to be for what compares runs to find its way in it. Knows no number's meaning."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError


class _Part(BaseModel):
    """Only what readers rely on is looked at; whatever else is there may stay."""

    model_config = ConfigDict(extra="ignore", strict=True)


class _Bundle(_Part):
    group_column: str


class _Jury(_Part):
    members: list[str]


class _Card(_Part):
    accuracy: float
    baseline: float
    below_baseline: bool


class _Scores(_Part):
    bundle: _Bundle
    judges: dict[str, dict[str, Any]]
    juries: dict[str, _Jury]
    cards: dict[str, _Card | None]


def is_whole(scores: object) -> bool:
    """Whether the parts are there and of their kinds."""
    try:
        _Scores.model_validate(scores)
    except ValidationError:
        return False
    return True
