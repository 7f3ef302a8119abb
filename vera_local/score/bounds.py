"""The interval of a percentage or a score, and how it was made. Knows no rating by name and no table.

A percentage is a single proportion where each persona stands behind it with one case: Wilson's interval. Else it is
the bootstrap over personas. Where every draw gives the same number (as with 0 or 100 %), that interval would have no
width, and Wilson's is taken as if each persona were one case: wide rather than narrow.
"""

from __future__ import annotations

from collections.abc import Callable
from math import hypot
from typing import Final

from pydantic import BaseModel, ConfigDict

from vera_local.score.formulas import vera_score
from vera_local.score.intervals import Floats, Interval, percentile_interval, wilson, without_width

FEW: Final = 10
"""A number with fewer personas behind it is marked."""

SEED: Final = 0
"""Of the draws: the same ratings give the same intervals."""

BOOTSTRAP, WILSON, OVER_PERSONAS = "bootstrap", "Wilson", "Wilson over personas"
FROM_BOTH = "from both intervals"
NO_CASES, ONE_PERSONA = "undefined: no data", "undefined: one persona"


class Bounds(BaseModel):
    """The 95 % interval of a number, in its unit, rounded to 2 decimals; None where there is none.

    `how`: how it was made, or why it is undefined.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    low: float | None
    high: float | None
    how: str


def undefined(reason: str) -> Bounds:
    """No interval, and why."""
    return Bounds(low=None, high=None, how=reason)


def bounds_of_share(count: int, of: int, personas: int, drawn: Callable[[], Floats]) -> Bounds:
    """The interval of 100 * `count` / `of`, whose cases belong to `personas`; `drawn` gives it for each draw."""
    if (reason := _undefined(personas)) is not None:
        return undefined(reason)
    if of == personas:
        return _wilson(count, of, WILSON)
    return _bootstrap(drawn()) or _wilson(personas * count / of, personas, OVER_PERSONAS)


def bounds_of_score(best: int, worst: int, of: int, personas: int, drawn: Callable[[], Floats]) -> Bounds:
    """The interval of the published score, of which `best` and `worst` of the cases are counted; else as of a share."""
    if (reason := _undefined(personas)) is not None:
        return undefined(reason)
    return _bootstrap(drawn()) or _score_over_personas(best / of, worst / of, personas)


def bounds_of_difference(drawn: Floats) -> Bounds | None:
    """The interval of a difference, from that of each draw; None where all draws give the same."""
    return _bootstrap(drawn)


def bounds_from_both(before: float, its: Bounds, after: float, other: Bounds) -> Bounds:
    """The interval of `after` less `before`, from how far both are from their own bounds (Newcombe 1998, method 10).

    Both must have an interval.
    """
    assert its.low is not None and its.high is not None and other.low is not None and other.high is not None
    apart = after - before
    low, high = apart - hypot(after - other.low, its.high - before), apart + hypot(other.high - after, before - its.low)
    return _bounds(low, high, FROM_BOTH)


def _undefined(personas: int) -> str | None:
    return {0: NO_CASES, 1: ONE_PERSONA}.get(personas)


def _bootstrap(drawn: Floats) -> Bounds | None:
    found = percentile_interval(drawn)
    if not isinstance(found, Interval):
        return undefined(f"undefined: {found.reason}")
    return None if without_width(found) else _bounds(found.low, found.high, BOOTSTRAP)


def _wilson(count: float, of: float, how: str) -> Bounds:
    low, high = _shares(count, of)
    return _bounds(100 * low, 100 * high, how)


def _score_over_personas(best: float, worst: float, personas: int) -> Bounds:
    """The lowest and the highest score that both shares' intervals allow."""
    fewest_best, most_best = _shares(personas * best, personas)
    fewest_worst, most_worst = _shares(personas * worst, personas)
    low, high = vera_score(100 * fewest_best, 100 * most_worst), vera_score(100 * most_best, 100 * fewest_worst)
    return _bounds(low, high, OVER_PERSONAS)


def _shares(count: float, of: float) -> tuple[float, float]:
    found = wilson(min(count, of), of)
    assert isinstance(found, Interval)
    return found.low, found.high


def _bounds(low: float, high: float, how: str) -> Bounds:
    return Bounds(low=round(low, 2), high=round(high, 2), how=how)
