"""Scores side by side and how far they are apart. Knows no chatbot, run or judge: sides are frames with a label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict

from vera_local.score.bounds import SEED, Bounds, bounds_from_both, bounds_of_difference, undefined
from vera_local.score.formulas import percentages, statistics
from vera_local.score.intervals import Floats
from vera_local.score.profile import Profile, Tally
from vera_local.score.scale import Scale
from vera_local.score.scores import check
from vera_local.score.tables import Sums, Table, count, resampled, together, unnamed
from vera_local.score.tally import profile_of

PAIRED, UNPAIRED = "paired bootstrap", "unpaired bootstrap"


class Apart(StrEnum):
    """What a difference says of a side, against the first."""

    HIGHER = "higher"
    LOWER = "lower"
    NOT = "cannot be told apart"
    """The interval covers zero."""
    UNDEFINED = "undefined"


class Difference(BaseModel):
    """A number of a side less that of the first, in its unit (points, 0 to 100).

    `dimension` None: all together. `statistic`: as in a tidy frame; `rating`: of which a percentage is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    side: str
    dimension: str | None
    statistic: str
    rating: str | None
    value: float | None
    interval: Bounds
    apart: Apart
    few: bool
    """Whether fewer than 10 personas stand behind either number."""


class Comparison(BaseModel):
    """Sides, the first of which the others are compared with."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scale: Scale
    sides: dict[str, Profile]
    paired: dict[str, bool]
    """Side -> whether it has any persona of the first; those of both are drawn for both."""
    shared: dict[str, int]
    """Side -> how many personas it has in common with the first."""
    differences: tuple[Difference, ...]


def compare(frames: Mapping[str, pl.DataFrame], scale: Scale, *, same_conversations: bool = False) -> Comparison:
    """Compare the ratings (SCHEMA) of one judge or of one set of conversations with those of the first frame.

    `same_conversations`: one id means one conversation in all frames, so that those without a named persona are
    paired, too. Raises ValueError as `score` for a frame that is not on the scale.
    """
    for frame in frames.values():
        check(frame, scale)
    tables = {label: count(frame, scale) for label, frame in frames.items()}
    sides = {label: _Side(profile_of(table, scale), table) for label, table in tables.items()}
    (_, first), *others = sides.items()
    pairs = {
        label: _Pair(label, first, side, scale, _shared(first.table, side.table, same_conversations))
        for label, side in others
    }
    return Comparison(
        scale=scale,
        sides={label: side.profile for label, side in sides.items()},
        paired={label: pair.paired for label, pair in pairs.items()},
        shared={label: len(pair.shared) for label, pair in pairs.items()},
        differences=tuple(d for pair in pairs.values() for d in pair.differences()),
    )


@dataclass(frozen=True)
class _Side:
    profile: Profile
    table: Table


def _shared(one: Table, other: Table, same_conversations: bool) -> frozenset[str]:
    """The personas of both; a conversation that stands for itself is none of another set of conversations."""
    both = frozenset(one.personas) & frozenset(other.personas)
    return both if same_conversations else frozenset(name for name in both if not unnamed(name))


@dataclass(frozen=True)
class _Number:
    value: float | None
    interval: Bounds
    few: bool


@dataclass(frozen=True)
class _Pair:
    label: str
    first: _Side
    other: _Side
    scale: Scale
    shared: frozenset[str]

    def differences(self) -> Iterator[Difference]:
        one, two = self._drawn()
        apart = statistics(two.ratings, self.scale) - statistics(one.ratings, self.scale)
        tallies = [(d, _tallies(self.first.profile)[d], t) for d, t in _tallies(self.other.profile).items()]
        for place, (dimension, before, after) in enumerate(tallies):
            for name, rating, column in self._statistics():
                numbers = (_number(before, name, rating), _number(after, name, rating))
                yield self._difference(dimension, name, rating, numbers, apart[:, place, column])
        worst = [_worst_number(side.profile) for side in (self.first, self.other)]
        drawn = _worst(two) - _worst(one)
        yield self._difference(None, "worst_percentage", self.scale.worst, (worst[0], worst[1]), drawn)

    def _statistics(self) -> list[tuple[str, str | None, int]]:
        """Name, rating and column (as `statistics` orders them) of each number to compare."""
        score: list[tuple[str, str | None, int]] = [("vera_score", None, -1)] if self.scale.has_vera_score else []
        last = len(self.scale.ratings) - 1
        return [*score, ("percentage", self.scale.worst, last), ("percentage", self.scale.best, 0)]

    def _drawn(self) -> Sequence[Sums]:
        one, two = self.first.table, self.other.table
        if not (one.personas and two.personas):
            return [_nothing(one), _nothing(two)]
        # Apart, each side needs draws of its own: the same ones would tie personas that do not belong together.
        if self.paired:
            return resampled(together(one, two, self.shared), SEED)
        return [*resampled([one], SEED), *resampled([two], SEED + 1)]

    @property
    def paired(self) -> bool:
        return bool(self.shared)

    def _difference(
        self, dimension: str | None, name: str, rating: str | None, numbers: tuple[_Number, _Number], drawn: Floats
    ) -> Difference:
        before, after = numbers
        value = None if before.value is None or after.value is None else round(after.value - before.value, 2)
        interval = self._interval(before, after, drawn)
        return Difference(
            side=self.label, dimension=dimension, statistic=name, rating=rating,
            value=value, interval=interval, apart=_apart(interval), few=before.few or after.few,
        )  # fmt: skip

    def _interval(self, before: _Number, after: _Number, drawn: Floats) -> Bounds:
        for number in (before, after):
            if number.interval.low is None:
                return number.interval
        found = bounds_of_difference(drawn)
        if found is None:
            assert before.value is not None and after.value is not None
            return bounds_from_both(before.value, before.interval, after.value, after.interval)
        return found.model_copy(update={"how": PAIRED if self.paired else UNPAIRED}) if found.low is not None else found


def _apart(interval: Bounds) -> Apart:
    if interval.low is None or interval.high is None:
        return Apart.UNDEFINED
    if interval.low <= 0 <= interval.high:
        return Apart.NOT
    return Apart.HIGHER if interval.low > 0 else Apart.LOWER


def _tallies(of: Profile) -> dict[str | None, Tally]:
    return dict([*of.dimensions.items(), (None, of.overall)])


def _number(tally: Tally, name: str, rating: str | None) -> _Number:
    if rating is not None:
        return _Number(tally.percentages[rating], tally.intervals.percentages[rating], tally.few)
    return _Number(tally.vera_score, tally.intervals.vera_score or undefined("undefined: no such score"), tally.few)


def _worst_number(of: Profile) -> _Number:
    return _Number(of.worst_percentage, of.worst_interval, of.few)


def _worst(sums: Sums) -> Floats:
    return percentages(sums.conversations[:, 2], sums.conversations[:, 1])


def _nothing(table: Table) -> Sums:
    _, dimensions, words = table.ratings.shape
    return Sums(np.zeros((1, dimensions + 1, words)), np.zeros((1, 3)))
