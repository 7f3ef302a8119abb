"""Scores as a table with one row per number. Knows no dimension or rating by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import polars as pl

from vera_local.score.bounds import FEW, Bounds
from vera_local.score.profile import Profile, Tally
from vera_local.score.scores import Scores

TIDY: Final = pl.Schema(
    {
        "judge": pl.String(),
        "group_column": pl.String(),
        "group": pl.String(),
        "dimension": pl.String(),
        "statistic": pl.String(),
        "rating": pl.String(),
        "value": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "how": pl.String(),
        "n": pl.Int64(),
        "personas": pl.Int64(),
        "few": pl.Boolean(),
    }
)
"""Columns of a tidy frame, in order. Null `group_column` and `group`: all conversations; null `dimension`: all of them
together. `rating`: of which a count or percentage is. `n`: the ratings or conversations that a value is made from;
`personas`: whose they are; `few`: whether these are fewer than 10."""

_Row = tuple[object, ...]


def tidy(scores: Mapping[str, Scores], group_column: str) -> pl.DataFrame:
    """Every number of every judge (the keys of `scores`); `group_column`: what `groups` are values of."""
    return pl.DataFrame(list(_rows(scores, group_column)), schema=TIDY, orient="row")


def _rows(scores: Mapping[str, Scores], group_column: str) -> Iterator[_Row]:
    for judge, its in scores.items():
        yield from ((judge, None, None, *row) for row in _profile(its, its.scale.worst))
        for column, groups in {group_column: its.groups, **its.by}.items():
            for group, profile in groups.items():
                yield from ((judge, column, group, *row) for row in _profile(profile, its.scale.worst))


def _profile(profile: Profile, worst: str) -> Iterator[_Row]:
    for dimension, tally in profile.dimensions.items():
        yield from ((dimension, *row) for row in _tally(tally))
    yield from ((None, *row) for row in _tally(profile.overall))
    everyone = (profile.personas, profile.personas < FEW)
    yield None, "conversations", None, profile.conversations, None, None, None, profile.conversations, *everyone
    interval, n, personas = profile.worst_interval, profile.conversations_relevant, profile.personas_relevant
    yield None, "worst_percentage", worst, profile.worst_percentage, *_told(interval), n, personas, profile.few


def _tally(tally: Tally) -> Iterator[_Row]:
    n, total, personas = tally.relevant, tally.total, (tally.personas, tally.few)
    everyone = (tally.personas_in_total, tally.personas_in_total < FEW)
    for rating, found in tally.counts.items():
        yield "count", rating, found, None, None, None, n, *personas
    for rating, share in tally.percentages.items():
        yield "percentage", rating, share, *_told(tally.intervals.percentages[rating]), n, *personas
    of_all = _told(tally.intervals.not_relevant_percentage)
    yield "not_relevant_percentage", None, tally.not_relevant_percentage, *of_all, total, *everyone
    yield "unrated", None, tally.unrated, None, None, None, total, *everyone
    if tally.intervals.vera_score is not None:
        yield "vera_score", None, tally.vera_score, *_told(tally.intervals.vera_score), n, *personas


def _told(bounds: Bounds) -> tuple[float | None, float | None, str]:
    return bounds.low, bounds.high, bounds.how
