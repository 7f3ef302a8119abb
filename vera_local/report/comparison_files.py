"""Comparisons as tables for programs and papers. Knows no run, and computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import polars as pl

from vera_local.report.comparison import OVERALL, legend, named, so_it_is
from vera_local.report.layout import mark
from vera_local.report.markdown import FEW_NOTE, HOW, bullets, head, row, with_bounds
from vera_local.score import Bounds, Profile, Tally
from vera_local.score.changes import KINDS, Change, Changes
from vera_local.score.compare import Comparison, Difference

COMPARED: Final = pl.Schema(
    {
        "judge": pl.String(),
        "side": pl.String(),
        "against": pl.String(),
        "dimension": pl.String(),
        "statistic": pl.String(),
        "rating": pl.String(),
        "value": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "how": pl.String(),
        "apart": pl.String(),
        "n": pl.Int64(),
        "personas": pl.Int64(),
        "few": pl.Boolean(),
    }
)
"""One row per number of a side (`against` null) and per difference. Null `dimension`: all of them together."""

CHANGED: Final = pl.Schema(
    {
        "first": pl.String(),
        "second": pl.String(),
        "dimension": pl.String(),
        "kind": pl.String(),
        "first_rating": pl.String(),
        "second_rating": pl.String(),
        "count": pl.Int64(),
        "percentage": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "how": pl.String(),
        "both": pl.Int64(),
        "personas": pl.Int64(),
    }
)
"""One row per kind of change, and per cell of the confusion (kind `confusion`). Null `dimension`: all together."""


def compared_frame(comparisons: Mapping[str, Comparison]) -> pl.DataFrame:
    """Judge -> comparison, as a frame of COMPARED."""
    rows = [(judge, *told) for judge, one in comparisons.items() for told in _comparison(one)]
    return pl.DataFrame(rows, schema=COMPARED, orient="row")


def changed_frame(pairs: Mapping[tuple[str, str], Changes]) -> pl.DataFrame:
    """First and second judge -> changes, as a frame of CHANGED."""
    rows = [
        (*pair, dimension, *told)
        for pair, changes in pairs.items()
        for dimension, change in [*changes.dimensions.items(), (None, changes.overall)]
        for told in _change(change)
    ]
    return pl.DataFrame(rows, schema=CHANGED, orient="row")


def comparison_markdown(judge: str, comparison: Comparison) -> Iterator[str]:
    """The lines of a table of the sides and one of the differences."""
    scale = comparison.scale
    score = ["VERA score"] if scale.has_vera_score else []
    columns = ["Dimension", "Side", "n", "Personas", *score, f"{scale.worst}, %", f"{scale.best}, %"]
    yield from (f"### Rated by {judge}", "", *head(columns, 2))
    for dimension in (*scale.dimensions, None):
        for label, profile in comparison.sides.items():
            tally = profile.overall if dimension is None else profile.dimensions[dimension]
            yield row([dimension or OVERALL, label, *_cells(tally, comparison)])
    yield from ("", *_any_worst(comparison), "")
    yield from head(["Dimension", "Side", "Number", "Difference", "So it is"], 3)
    yield from (row(_difference(d)) for d in comparison.differences)
    yield from ("", *bullets([*legend(comparison), HOW, FEW_NOTE]), "")


def changes_markdown(first: str, second: str, changes: Changes) -> Iterator[str]:
    """The lines of a table of changes, and of the confusion of all dimensions together."""
    kinds = [f"{kind}, %" for kind in KINDS]
    yield from (f"### {second} against {first}", "", *head(["Dimension", "n", "Personas", *kinds, "net", "So it is"]))
    for name, change in {**changes.dimensions, OVERALL: changes.overall}.items():
        shares = (change.same, change.stricter, change.milder, change.relevance)
        cells = [with_bounds(kind.percentage, kind.interval) for kind in shares]
        net = with_bounds(change.net, change.net_interval)
        yield row([name, str(change.both), f"{change.personas}{mark(change.few)}", *cells, net, change.direction])
    yield from ("", *head([f"{first} / {second}", *changes.overall.confusion]))
    for word, counts in changes.overall.confusion.items():
        yield row([word, *map(str, counts.values())])
    yield ""


def _cells(tally: Tally, comparison: Comparison) -> Iterator[str]:
    scale, intervals = comparison.scale, tally.intervals
    yield from (str(tally.relevant), f"{tally.personas}{mark(tally.few)}")
    if scale.has_vera_score:
        yield with_bounds(tally.vera_score, intervals.vera_score)
    for rating in (scale.worst, scale.best):
        yield with_bounds(tally.percentages[rating], intervals.percentages[rating])


def _any_worst(comparison: Comparison) -> Iterator[str]:
    yield f"Relevant conversations with any {comparison.scale.worst}:"
    for label, one in comparison.sides.items():
        share = with_bounds(one.worst_percentage, one.worst_interval)
        yield f"- {label}: {one.conversations_with_worst} of {one.conversations_relevant}, {share} %"


def _difference(one: Difference) -> list[str]:
    value = with_bounds(one.value, one.interval)
    return [one.dimension or OVERALL, one.side, named(one.statistic, one.rating), value, so_it_is(one)]


def _comparison(one: Comparison) -> Iterator[tuple[object, ...]]:
    first = next(iter(one.sides))
    for label, profile in one.sides.items():
        yield from ((label, None, *told) for told in _side(profile, one))
    for d in one.differences:
        told = (d.value, *_bounds(d.interval), d.apart.value, None, None, d.few)
        yield d.side, first, d.dimension, d.statistic, d.rating, *told


def _side(profile: Profile, one: Comparison) -> Iterator[tuple[object, ...]]:
    for dimension, tally in [*profile.dimensions.items(), (None, profile.overall)]:
        behind = (None, tally.relevant, tally.personas, tally.few)
        if tally.intervals.vera_score is not None:
            yield dimension, "vera_score", None, tally.vera_score, *_bounds(tally.intervals.vera_score), *behind
        for rating in (one.scale.worst, one.scale.best):
            told = _bounds(tally.intervals.percentages[rating])
            yield dimension, "percentage", rating, tally.percentages[rating], *told, *behind
    interval, behind_all = (
        _bounds(profile.worst_interval),
        (profile.conversations_relevant, profile.personas_relevant, profile.few),
    )
    yield None, "worst_percentage", one.scale.worst, profile.worst_percentage, *interval, None, *behind_all


def _change(change: Change) -> Iterator[tuple[object, ...]]:
    behind = (change.both, change.personas)
    for name, kind in zip(KINDS, (change.same, change.stricter, change.milder, change.relevance), strict=True):
        yield name, None, None, kind.count, kind.percentage, *_bounds(kind.interval), *behind
    yield "net", None, None, None, change.net, *_bounds(change.net_interval), *behind
    yield "unrated", None, None, change.unrated, None, None, None, None, *behind
    for word, row_ in change.confusion.items():
        for other, count in row_.items():
            yield "confusion", word, other, count, None, None, None, None, *behind


def _bounds(bounds: Bounds) -> tuple[float | None, float | None, str]:
    return bounds.low, bounds.high, bounds.how
