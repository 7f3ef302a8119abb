"""What a judge said to one question. Knows no rubric beyond the question's id."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vera_local.engine.seam import NO_USAGE, Usage


class State(StrEnum):
    """Whether a verdict holds an answer, and if not, why. Only ANSWERED does."""

    ANSWERED = "answered"
    INVALID = "invalid"
    """What came back is none of the options."""
    REFUSED = "refused"
    """The judge declined to answer."""
    OVERFLOW = "overflow"
    """Transcript and question do not fit the judge's context."""
    ERROR = "error"
    """The engine failed on this request."""


class Mode(StrEnum):
    """How the answer came about."""

    AUTO = "auto"
    """The question has one option: no model was asked."""
    DIRECT = "direct"
    """The constrained answer, at once."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`answer` is exactly one of the question's options where the state is ANSWERED, else None.

    `text` is what the model wrote, `detail` why there is no answer.
    """

    question: str
    state: State
    answer: str | None
    mode: Mode
    text: str = ""
    detail: str = ""
    usage: Usage = NO_USAGE
