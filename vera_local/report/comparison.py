"""Comparisons of chatbots and of judges: tables for the terminal. Knows no run, and computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from vera_local.report.layout import NONE, mark, plain_table, signed_span, span, stacked
from vera_local.score import FEW, Bounds, Profile, Scale, Tally
from vera_local.score.changes import KINDS, Change, Changes
from vera_local.score.compare import Comparison, Difference

OVERALL = "Overall"
NAMES = {"vera_score": "VERA score", "worst_percentage": "Conversations with any {}", "percentage": "{}"}


def named(statistic: str, rating: str | None) -> str:
    """A statistic in words."""
    return NAMES[statistic].format(rating)


def so_it_is(one: Difference) -> str:
    """The words for a difference, marked where few personas are behind it."""
    return f"{one.apart.value}{mark(one.few)}"


def letters(labels: Sequence[str]) -> dict[str, str]:
    """Label -> A, B, C and so on, for cells that are too narrow for names."""
    return {label: chr(ord("A") + i) if len(labels) <= 26 else str(i + 1) for i, label in enumerate(labels)}


def side_by_side(comparison: Comparison) -> RenderableType:
    """Of each dimension and side: n, the score, the worst and the best rating's share, each with its interval."""
    scale, short = comparison.scale, letters(list(comparison.sides))
    score = ["VERA score"] if scale.has_vera_score else []
    table = plain_table("Dimension", ["", "n", *score, *(stacked(f"{r}, %") for r in (scale.worst, scale.best))])
    for dimension in (*scale.dimensions, None):
        table.add_section()
        for i, (label, profile) in enumerate(comparison.sides.items()):
            tally = profile.overall if dimension is None else profile.dimensions[dimension]
            name = Text(dimension or OVERALL) if i == 0 else Text("")
            table.add_row(name, Text(short[label]), *map(Text, _cells(tally, scale)))
    table.add_section()
    for i, (label, profile) in enumerate(comparison.sides.items()):
        table.add_row(
            Text(f"Conversations with any {scale.worst}" if i == 0 else ""), *_worst(profile, scale, short[label])
        )
    table.caption = Text(
        f"n: relevant ratings, or conversations. *: fewer than {FEW} personas. In brackets: 95 % interval."
    )
    return table


def differences(comparison: Comparison) -> RenderableType:
    """Each number of the others less that of the first, in plain words."""
    short = letters(list(comparison.sides))
    table = plain_table("Dimension", ["Number"])
    for name in ("", "Difference", "95 %"):
        table.add_column(name, justify="right")
    table.add_column("So it is")
    last: str | None = ""
    for one in sorted(comparison.differences, key=lambda d: _order(comparison.scale, d)):
        if one.dimension != last:
            table.add_section()
        table.add_row(Text("" if one.dimension == last else one.dimension or OVERALL), *_row(one, short))
        last = one.dimension
    table.columns[1].justify = "left"
    table.caption = Text("\n".join(legend(comparison)))
    return table


def legend(comparison: Comparison) -> Iterator[str]:
    """How the differences were made, in words."""
    labels = list(comparison.sides)
    yield f"*: fewer than {FEW} personas behind one of the two. {NONE}: no interval."
    yield f"Differences are from {labels[0]}, in points. Of 20 that are truly nil, about 1 is told apart by chance."
    apart = [label for label, paired in comparison.paired.items() if not paired]
    if together := [f"{n} with {label}" for label, n in comparison.shared.items() if comparison.paired[label]]:
        yield f"Paired: personas of both sides are drawn for both. {labels[0]} shares {', '.join(together)}."
    if apart:
        yield f"Unpaired, for they have no persona in common with {labels[0]}: {', '.join(apart)}."


def change_table(changes: Changes) -> RenderableType:
    """How many ratings changed and in which direction, for each dimension."""
    table = plain_table("Dimension", ["Both", *(kind.capitalize() for kind in KINDS), "Unrated"])
    table.add_column("So it is")
    for name, change in {**changes.dimensions, OVERALL: changes.overall}.items():
        if name == OVERALL:
            table.add_section()
        table.add_row(Text(name), *map(Text, _changed(change)), style="bold" if name == OVERALL else "")
    table.caption = Text(
        "Both: ratings that both gave. Relevance: only one of them said that the dimension is not relevant. "
        f"Percentages are of both. *: fewer than {FEW} personas. So it is: whether more became stricter than milder."
    )
    return table


def confusion_table(change: Change, first: str, second: str) -> RenderableType:
    """The first judge's words down, the second's across, counts inside."""
    table = plain_table(f"{first} / {second}", [stacked(word) for word in change.confusion])
    for word, row in change.confusion.items():
        table.add_row(Text(word), *(Text(str(n) if n else ".") for n in row.values()))
    return table


def _cells(tally: Tally, scale: Scale) -> Iterator[str]:
    yield f"{tally.relevant}{mark(tally.few)}"
    if scale.has_vera_score:
        yield _with_span(tally.vera_score, tally.intervals.vera_score)
    for rating in (scale.worst, scale.best):
        yield _with_span(tally.percentages[rating], tally.intervals.percentages[rating])


def _worst(profile: Profile, scale: Scale, letter: str) -> list[Text]:
    cells = [letter, f"{profile.conversations_relevant}{mark(profile.few)}", *([""] if scale.has_vera_score else [])]
    return [Text(t) for t in (*cells, _with_span(profile.worst_percentage, profile.worst_interval), "")]


def _with_span(value: float | None, bounds: Bounds | None) -> str:
    if value is None:
        return "no data"
    return f"{value:.1f}" if bounds is None or bounds.low is None else f"{value:.1f} ({span(bounds)})"


def _order(scale: Scale, one: Difference) -> tuple[int, int]:
    place = len(scale.dimensions) if one.dimension is None else scale.dimensions.index(one.dimension)
    return place, one.statistic == "worst_percentage"


def _row(one: Difference, short: Mapping[str, str]) -> list[Text]:
    value = "-" if one.value is None else f"{one.value:+.1f}"
    words = [named(one.statistic, one.rating), short[one.side], value, signed_span(one.interval), so_it_is(one)]
    return [Text(word) for word in words]


def _changed(change: Change) -> Iterator[str]:
    yield f"{change.both}{mark(change.few)}"
    for kind in (change.same, change.stricter, change.milder, change.relevance):
        yield str(kind.count) if kind.percentage is None else f"{kind.count}\n{kind.percentage:.1f}%"
    yield str(change.unrated)
    yield change.direction
