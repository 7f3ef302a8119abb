"""From ratings to a profile: every number with its interval. Knows no dimension or rating by name, and no groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import polars as pl

from vera_local.score.bounds import FEW, SEED, Bounds, bounds_of_score, bounds_of_share
from vera_local.score.formulas import percentage, percentages, statistics, vera_score
from vera_local.score.intervals import Floats
from vera_local.score.profile import Intervals, Profile, Tally
from vera_local.score.scale import Scale
from vera_local.score.tables import Counts, Sums, Table, count, resampled


def profile(frame: pl.DataFrame, scale: Scale) -> Profile:
    """The profile of the ratings (SCHEMA, words of the scale) of one judge."""
    return profile_of(count(frame, scale), scale)


def profile_of(table: Table, scale: Scale) -> Profile:
    """The same of ratings that are counted already."""
    return _Profiler(table, scale).profile()


@dataclass(frozen=True)
class _Profiler:
    table: Table
    scale: Scale

    def profile(self) -> Profile:
        relevant = self.table.conversations[:, 1]
        judged, n, worst = map(int, self.table.conversations.sum(axis=0))
        tallies = [_Tallier(self, place).tally() for place in range(len(self.scale.dimensions) + 1)]
        return Profile(
            conversations=judged,
            personas=len(self.table.personas),
            personas_relevant=_behind(relevant),
            conversations_relevant=n,
            conversations_with_worst=worst,
            worst_percentage=percentage(worst, n),
            worst_interval=bounds_of_share(worst, n, _behind(relevant), self.drawn_worst),
            few=_behind(relevant) < FEW,
            dimensions=dict(zip(self.scale.dimensions, tallies[:-1], strict=True)),
            overall=tallies[-1],
        )

    @cached_property
    def drawn(self) -> Sums:
        return resampled([self.table], SEED)[0]

    @cached_property
    def drawn_statistics(self) -> Floats:
        """(draws, dimensions + 1, ratings + 2), as `statistics` orders them."""
        return statistics(self.drawn.ratings, self.scale)

    def drawn_worst(self) -> Floats:
        """Of each draw, the percentage of relevant conversations with any worst rating."""
        return percentages(self.drawn.conversations[:, 2], self.drawn.conversations[:, 1])

    @cached_property
    def ratings(self) -> Counts:
        """(personas, dimensions + 1, words), all dimensions together last."""
        return np.concatenate([self.table.ratings, self.table.ratings.sum(axis=1, keepdims=True)], axis=1)


@dataclass(frozen=True)
class _Tallier:
    """One dimension, or all of them together at the last `place`."""

    of: _Profiler
    place: int

    def tally(self) -> Tally:
        scale, counts = self.of.scale, self.counts
        n, total = int(counts[:-2].sum()), int(counts.sum())
        shares = {rating: percentage(int(c), n) for rating, c in zip(scale.ratings, counts, strict=False)}
        return Tally(
            counts={rating: int(c) for rating, c in zip(scale.ratings, counts, strict=False)},
            percentages=shares,
            relevant=n,
            not_relevant=int(counts[-2]),
            not_relevant_percentage=percentage(int(counts[-2]), total),
            unrated=int(counts[-1]),
            total=total,
            vera_score=self.score(*(shares[rating] for rating in (scale.best, scale.worst))),
            conversations=self.conversations(n),
            personas=self.personas,
            few=self.personas < FEW,
            personas_in_total=self.everyone,
            intervals=self.intervals(n, total),
        )

    @cached_property
    def by_persona(self) -> Counts:
        """(personas, words)."""
        return self.of.ratings[:, self.place]

    @cached_property
    def counts(self) -> Counts:
        """(words,)."""
        counts: Counts = self.by_persona.sum(axis=0)
        return counts

    @cached_property
    def personas(self) -> int:
        """With a relevant rating."""
        return _behind(self.by_persona[:, :-2].sum(axis=1))

    @cached_property
    def everyone(self) -> int:
        """With any rating, relevant or not, or Unrated."""
        return _behind(self.by_persona.sum(axis=1))

    def conversations(self, relevant: int) -> int:
        """With a relevant rating: of one dimension as many as ratings."""
        overall = self.place == len(self.of.scale.dimensions)
        return int(self.of.table.conversations[:, 1].sum()) if overall else relevant

    def score(self, best: float | None, worst: float | None) -> float | None:
        if best is None or worst is None or not self.of.scale.has_vera_score:
            return None
        return vera_score(best, worst)

    def intervals(self, n: int, total: int) -> Intervals:
        scale = self.of.scale
        return Intervals(
            percentages={
                rating: bounds_of_share(int(self.counts[i]), n, self.personas, partial(self.drawn, i))
                for i, rating in enumerate(scale.ratings)
            },
            not_relevant_percentage=bounds_of_share(
                int(self.counts[-2]), total, self.everyone, partial(self.drawn, -2)
            ),
            vera_score=self.score_interval(n) if scale.has_vera_score else None,
        )

    def score_interval(self, n: int) -> Bounds:
        best, worst = int(self.counts[0]), int(self.counts[len(self.of.scale.ratings) - 1])
        return bounds_of_score(best, worst, n, self.personas, partial(self.drawn, -1))

    def drawn(self, statistic: int) -> Floats:
        """A statistic of each draw."""
        return self.of.drawn_statistics[:, self.place, statistic]


def _behind(cases: Counts) -> int:
    """How many personas have any case."""
    return int(np.count_nonzero(cases))
