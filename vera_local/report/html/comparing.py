"""Comparisons as pages: sides beside each other, and how far they are apart. Knows no run, and computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vera_local.report.comparison import legend as how
from vera_local.report.comparison import letters, named, so_it_is
from vera_local.report.html.bars import OVERALL, Bar, Block, block, legend
from vera_local.report.html.numbers import Keys, Number, count, points
from vera_local.score.changes import KINDS, Change, Changes
from vera_local.score.compare import Comparison, Difference


@dataclass(frozen=True)
class Side:
    """One of those that are compared: `letter` names it where there is little room."""

    label: str
    letter: str
    told: str


@dataclass(frozen=True)
class Apart:
    """A difference from the first side, in points; `at`, `from_` and `to`: where it lies between -100 (0 %) and 100."""

    dimension: str
    what: str
    side: str
    letter: str
    value: Number | None
    low: Number | None
    high: Number | None
    at: float | None
    from_: float | None
    to: float | None
    told: str


@dataclass(frozen=True)
class Multiple:
    """One dimension: the bar of each side, and the differences between them."""

    name: str
    bars: tuple[tuple[Side, Bar], ...]
    apart: tuple[Apart, ...]


@dataclass(frozen=True)
class ChangeLine:
    """How the ratings of one dimension changed, kind by kind: count and share."""

    name: str
    both: Number
    few: bool
    kinds: tuple[tuple[Number, Number | None], ...]
    unrated: Number
    direction: str


@dataclass(frozen=True)
class Confusion:
    """The first judge's words down, the second's across."""

    words: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Number, ...]], ...]


@dataclass(frozen=True)
class Part:
    """One comparison. `blocks`: side -> all its numbers; `changes` and `confusion` where judges are compared."""

    id: str
    title: str
    sides: tuple[Side, ...]
    blocks: tuple[Block, ...]
    multiples: tuple[Multiple, ...]
    any_worst: tuple[Apart, ...]
    legend: Mapping[str, str]
    worst: str
    has_score: bool
    not_relevant: str | None
    notes: tuple[str, ...]
    changes: tuple[ChangeLine, ...] = ()
    confusion: Confusion | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The columns of `changes`."""
        return KINDS


@dataclass(frozen=True)
class ComparisonPage:
    """A page of one comparison or more, with what one must know of all of them."""

    title: str
    eyebrow: str
    parts: tuple[Part, ...]
    notes: tuple[str, ...]


def part(
    id: str,
    title: str,
    comparison: Comparison,
    told: Mapping[str, str],
    at: Keys,
    changes: tuple[Keys, Changes] | None = None,
) -> Part:
    """One comparison, which `vera-local compare --json` has `at` these keys; `told`: side -> what it is, in words.

    `id`: what the page calls it. `changes`, with their keys, where judges are compared.
    """
    scale, short = comparison.scale, letters(list(comparison.sides))
    sides = tuple(Side(label, short[label], told.get(label, "")) for label in comparison.sides)
    profiles = comparison.sides.items()
    blocks = tuple(block(its, scale, (*at, "sides", label), label) for label, its in profiles)
    return Part(
        id=id,
        title=title,
        sides=sides,
        blocks=blocks,
        multiples=tuple(_multiples(comparison, sides, blocks, at)),
        any_worst=tuple(_apart(comparison, at, None, "worst_percentage")),
        legend=legend(scale),
        worst=scale.worst,
        has_score=scale.has_vera_score,
        not_relevant=scale.not_relevant,
        notes=tuple(how(comparison)),
        changes=() if changes is None else tuple(_changes(*changes)),
        confusion=None if changes is None else _confusion(changes[1].overall, (*changes[0], "overall", "confusion")),
    )


def _multiples(c: Comparison, sides: Sequence[Side], blocks: Sequence[Block], at: Keys) -> Iterator[Multiple]:
    for place, dimension in enumerate((*c.scale.dimensions, None)):
        bars = tuple((side, its.lines[place]) for side, its in zip(sides, blocks, strict=True))
        yield Multiple(dimension or OVERALL, bars, tuple(_apart(c, at, dimension, "vera_score", "percentage")))


def _apart(c: Comparison, at: Keys, dimension: str | None, *statistics: str) -> Iterator[Apart]:
    for place, d in enumerate(c.differences):
        if d.dimension == dimension and d.statistic in statistics:
            yield _difference(d, letters(list(c.sides))[d.side], (*at, "differences", str(place)))


def _difference(d: Difference, letter: str, at: Keys) -> Apart:
    ends = [None if value is None else round(50 + value / 2, 2) for value in (d.value, d.interval.low, d.interval.high)]
    return Apart(
        dimension=d.dimension or OVERALL,
        what=named(d.statistic, d.rating),
        side=d.side,
        letter=letter,
        value=points(d.value, (*at, "value")),
        low=points(d.interval.low, (*at, "interval", "low")),
        high=points(d.interval.high, (*at, "interval", "high")),
        at=ends[0],
        from_=ends[1],
        to=ends[2],
        told=so_it_is(d),
    )


def _changes(at: Keys, changes: Changes) -> Iterator[ChangeLine]:
    for name, change in changes.dimensions.items():
        yield _change(name, change, (*at, "dimensions", name))
    yield _change(OVERALL, changes.overall, (*at, "overall"))


def _change(name: str, change: Change, at: Keys) -> ChangeLine:
    kinds = {kind: getattr(change, kind) for kind in KINDS}
    return ChangeLine(
        name=name,
        both=count(change.both, (*at, "both")),
        few=change.few,
        kinds=tuple(
            (count(its.count, (*at, kind, "count")), points(its.percentage, (*at, kind, "percentage")))
            for kind, its in kinds.items()
        ),
        unrated=count(change.unrated, (*at, "unrated")),
        direction=change.direction,
    )


def _confusion(change: Change, at: Keys) -> Confusion:
    rows = (
        (word, tuple(count(n, (*at, word, other)) for other, n in its.items()))
        for word, its in change.confusion.items()
    )
    return Confusion(tuple(change.confusion), tuple(rows))
