"""What a judge said to one question. Knows no rubric beyond the question's id."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vera_local.engine.seam import NO_USAGE, Usage

LOW_MASS = 0.5
"""Below this share the model, left alone, would rather have said something that is no option."""

NEAR_TIE = 0.2
"""Below this distance between the two likeliest options, as shares of what the options hold together, it wavers."""


class State(StrEnum):
    """Whether a verdict holds an answer, and if not, why. Only ANSWERED does."""

    ANSWERED = "answered"
    INVALID = "invalid"
    """What came back is none of the options, or the reasoning before it did not end."""
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
    REASON = "reason"
    """Some sentences of reasons first, then the constrained answer behind them."""
    THINK = "think"
    """The model's own reasoning first, then the constrained answer behind it."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """What the model would have said without the constraint.

    `options` maps each option to the probability that the model's text begins with it, and with no longer option.
    """

    options: dict[str, float]

    @property
    def mass(self) -> float:
        """How probable it is that the model's text begins with any of the options."""
        return sum(self.options.values())

    @property
    def margin(self) -> float:
        """Distance between the two likeliest options, as shares of `mass`; 0 where there is no mass."""
        first, second, *_ = sorted((*self.options.values(), 0.0), reverse=True)
        return (first - second) / self.mass if self.mass > 0 else 0.0

    def doubt(self, answer: str) -> str:
        """Why an answer should be looked at, in a few words; empty where there is no reason to."""
        reasons = []
        if self.mass < LOW_MASS:
            reasons.append(f"the options hold {self.mass:.2f} of the probability")
        elif self.margin < NEAR_TIE:
            reasons.append(f"near tie, {self.margin:.2f} apart")
        if self.options[answer] < max(self.options.values()):
            reasons.append("not the likeliest option")
        return "; ".join(reasons)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`answer` is exactly one of the question's options where the state is ANSWERED, else None.

    `text` is what the model wrote as its answer, `detail` why there is no answer. `rationale` is the reasoning
    before it. `evidence` are the turns (numbers from 1) that the judge named for its answer; empty: it named none;
    None: it was not asked, or gave none that exists. `left_out` names turns that the judge was not shown.
    """

    question: str
    state: State
    answer: str | None
    mode: Mode
    text: str = ""
    detail: str = ""
    usage: Usage = NO_USAGE
    rationale: str = ""
    evidence: tuple[int, ...] | None = None
    confidence: Confidence | None = None
    left_out: str = ""

    @property
    def doubt(self) -> str:
        """Why a person should look at this answer; empty where there is no reason to, or no answer or reading."""
        return "" if self.answer is None or self.confidence is None else self.confidence.doubt(self.answer)

    @property
    def uncertain(self) -> bool:
        """Whether a person should look at this answer. It stands all the same."""
        return bool(self.doubt)
