"""Counts, percentages and the VERA score of one judge's ratings. Knows no dimension or rating by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl
from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True, slots=True)
class Scale:
    """What ratings may say: `ratings` best first; `dimensions` and `groups` in the order to report them.

    `not_relevant` None: no rating says so.
    """

    ratings: tuple[str, ...]
    not_relevant: str | None
    dimensions: tuple[str, ...]
    groups: tuple[str, ...]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


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


class Profile(_Frozen):
    """Tallies of a set of conversations; `overall` pools the counts of all dimensions."""

    conversations: int
    conversations_with_worst: int
    """Conversations in which any dimension has the worst rating."""
    dimensions: dict[str, Tally]
    overall: Tally


class Scores(Profile):
    """The profile of all conversations of one judge, and of each group's."""

    scale: Scale
    groups: dict[str, Profile]


def score(frame: pl.DataFrame, scale: Scale) -> Scores:
    """Score the ratings (a frame as `ratings_frame` makes it) of at most one judge.

    Raises ValueError for a rating, dimension or group that is not on the scale, for a dimension of a conversation
    that is rated twice, and for ratings of several judges.
    """
    _check(frame, scale)
    groups = {group: _profile(frame.filter(pl.col("group") == group), scale) for group in scale.groups}
    return Scores(**dict(_profile(frame, scale)), scale=scale, groups=groups)


def score_by_judge(frame: pl.DataFrame, scale: Scale) -> dict[str, Scores]:
    """Judge -> its scores, in order of the judges' names; raises ValueError as `score` does."""
    judges = sorted(frame["judge"].unique())
    return {judge: score(frame.filter(pl.col("judge") == judge), scale) for judge in judges}


def vera_score(best: float, worst: float) -> float:
    """The published score from the percentages (rounded, as published) of the best and of the worst rating."""
    return round(max(0.0, (50 + best / 2) * (1 - worst / 100) ** 2), 2)


def _check(frame: pl.DataFrame, scale: Scale) -> None:
    not_relevant = () if scale.not_relevant is None else (scale.not_relevant,)
    _only(frame["rating"].drop_nulls(), (*scale.ratings, *not_relevant))
    _only(frame["dimension"], scale.dimensions)
    _only(frame["group"], scale.groups)
    if frame["judge"].n_unique() > 1:
        raise ValueError("the ratings are of several judges; score_by_judge takes them apart")
    if frame.select("conversation", "dimension").is_duplicated().any():
        raise ValueError("a dimension of a conversation is rated twice")


def _only(values: pl.Series, known: Iterable[str]) -> None:
    unknown = set(values.unique()) - set(known)
    if unknown:
        raise ValueError(f"{values.name} not on the scale: {', '.join(sorted(map(repr, unknown)))}")


def _profile(frame: pl.DataFrame, scale: Scale) -> Profile:
    worst = frame.filter(pl.col("rating") == scale.ratings[-1])
    return Profile(
        conversations=frame["conversation"].n_unique(),
        conversations_with_worst=worst["conversation"].n_unique(),
        dimensions={name: _tally(frame.filter(pl.col("dimension") == name), scale) for name in scale.dimensions},
        overall=_tally(frame, scale),
    )


def _tally(frame: pl.DataFrame, scale: Scale) -> Tally:
    found: dict[str | None, int] = dict(frame["rating"].value_counts().iter_rows())
    counts = {rating: found.get(rating, 0) for rating in scale.ratings}
    relevant, not_relevant = sum(counts.values()), _not_relevant(found, scale)
    percentages = {rating: _percentage(count, relevant) for rating, count in counts.items()}
    return Tally(
        counts=counts,
        percentages=percentages,
        relevant=relevant,
        not_relevant=not_relevant,
        not_relevant_percentage=_percentage(not_relevant, frame.height),
        unrated=found.get(None, 0),
        total=frame.height,
        vera_score=_vera_score(tuple(percentages.values())),
    )


def _not_relevant(found: dict[str | None, int], scale: Scale) -> int:
    # None among the ratings means Unrated, so a scale without the word must not look for it.
    return 0 if scale.not_relevant is None else found.get(scale.not_relevant, 0)


def _percentage(count: int, of: int) -> float | None:
    return round(100 * count / of, 2) if of else None


def _vera_score(percentages: tuple[float | None, ...]) -> float | None:
    match percentages:
        case (float(best), float(), float(worst)):
            return vera_score(best, worst)
        case _:
            return None
