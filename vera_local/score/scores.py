"""Ratings of one judge or several to profiles of all conversations and of each group. Knows no word of a rubric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl
from pydantic import Field

from vera_local.score.modes import Decision, decisions
from vera_local.score.profile import Profile
from vera_local.score.ratings import UNKNOWN
from vera_local.score.scale import Scale
from vera_local.score.tally import profile


class Scores(Profile):
    """The profile of all conversations of one judge, and of each group's."""

    scale: Scale
    groups: dict[str, Profile]
    by: dict[str, dict[str, Profile]] = Field(default_factory=dict)
    """Persona column -> value -> profile, for the columns that were asked for."""
    decisions: tuple[Decision, ...] = ()
    """How often each question decided which rating; empty where that is not known."""


@dataclass(frozen=True)
class Grouping:
    """What to report by: the values of `key`, a column of the ratings, and the groups in the order to report them.

    `values`: persona (or what else the key holds) -> group.
    """

    values: Mapping[str, str]
    order: tuple[str, ...]
    key: Literal["persona", "conversation"] = "persona"


def score(
    frame: pl.DataFrame,
    scale: Scale,
    *,
    by: Mapping[str, Grouping] | None = None,
    questions: pl.DataFrame | None = None,
) -> Scores:
    """Score the ratings (a frame as `ratings_frame` makes it) of at most one judge.

    `by`: further persona columns to score by. `questions`: what this judge was asked, for its decisions.

    Raises ValueError for a rating, dimension or group that is not on the scale, for a dimension of a conversation
    that is rated twice, and for ratings of several judges.
    """
    check(frame, scale)
    return Scores(
        **dict(profile(frame, scale)),
        scale=scale,
        groups=_profiles(frame, scale, scale.groups),
        by={column: _by(frame, scale, grouping) for column, grouping in (by or {}).items()},
        decisions=() if questions is None else decisions(questions, scale),
    )


def score_by_judge(
    frame: pl.DataFrame,
    scale: Scale,
    *,
    by: Mapping[str, Grouping] | None = None,
    questions: pl.DataFrame | None = None,
) -> dict[str, Scores]:
    """Judge -> its scores, in order of the judges' names; `questions` of all judges; raises ValueError as `score`."""
    asked = None if questions is None else {judge: part for (judge,), part in questions.group_by("judge")}
    return {
        judge: score(
            frame.filter(pl.col("judge") == judge), scale, by=by, questions=None if asked is None else asked.get(judge)
        )
        for judge in sorted(frame["judge"].unique())
    }


def _profiles(frame: pl.DataFrame, scale: Scale, groups: Iterable[str]) -> dict[str, Profile]:
    return {group: profile(frame.filter(pl.col("group") == group), scale) for group in groups}


def _by(frame: pl.DataFrame, scale: Scale, grouping: Grouping) -> dict[str, Profile]:
    values = pl.col(grouping.key).replace_strict(dict(grouping.values), default=UNKNOWN, return_dtype=pl.String)
    regrouped = frame.with_columns(group=values)
    unknown = UNKNOWN in regrouped["group"] and UNKNOWN not in grouping.order
    return _profiles(regrouped, scale, (*grouping.order, UNKNOWN) if unknown else grouping.order)


def check(frame: pl.DataFrame, scale: Scale) -> None:
    """ValueError where a frame of one judge is not as `score` needs it."""
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
