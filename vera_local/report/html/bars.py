"""Profiles as bars with their numbers: what a page draws of them. Knows no page, no judge and no rating by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vera_local.report.html.numbers import NO_DATA, Keys, Number, count, points
from vera_local.report.html.tones import tones
from vera_local.score import DRAWS, FEW, SEED, Bounds, Profile, Scale, Scores, Tally

OVERALL = "All dimensions"


@dataclass(frozen=True)
class Measure:
    """A percentage or score with its interval; `how` says how that was made, or why there is none."""

    value: Number | None
    low: Number | None
    high: Number | None
    how: str


@dataclass(frozen=True)
class Part:
    """A rating in a bar: from `left` and `width` per cent wide, with its interval from `low` to `high` where known.

    Worst ratings lie at the left end, so that harm begins where the eye does. The interval of the worst rating is
    measured from that end, that of the best from the other one.
    """

    rating: str
    tone: str
    left: float
    width: float
    count: Number
    share: Measure
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Bar:
    """One line of a matrix; `parts` worst first; `apart`: Not Relevant, where the scale has it."""

    name: str
    parts: tuple[Part, ...]
    n: Number
    personas: Number
    few: bool
    apart: Number | None
    apart_share: Measure | None
    unrated: Number
    has_unrated: bool
    score: Measure | None
    text: str

    @property
    def worst(self) -> Part:
        """The part of the worst rating."""
        return self.parts[0]

    @property
    def best(self) -> Part:
        """The part of the best rating."""
        return self.parts[-1]


@dataclass(frozen=True)
class AnyWorst:
    """How many conversations have any worst rating, of those with a relevant one.

    `none_found`: none has, and no rating is missing that could be one.
    """

    rating: str
    count: Number
    of: Number
    share: Measure
    few: bool
    none_found: bool


@dataclass(frozen=True)
class Block:
    """The bars of a set of conversations: `overall` pools all dimensions."""

    name: str
    bars: tuple[Bar, ...]
    overall: Bar
    any_worst: AnyWorst
    conversations: Number
    personas: Number
    empty: bool

    @property
    def lines(self) -> tuple[Bar, ...]:
        """All bars, that of all dimensions last."""
        return (*self.bars, self.overall)


def blocks(scores: Scores, judge: str, group_column: str) -> dict[str, tuple[Block, ...]]:
    """Persona column -> a block for each of its values; the groups first."""
    at = ("judges", judge)
    groups = {group_column: ((*at, "groups"), scores.groups)}
    by = {column: ((*at, "by", column), profiles) for column, profiles in scores.by.items()}
    return {
        column: tuple(block(profile, scores.scale, (*keys, name), name) for name, profile in profiles.items())
        for column, (keys, profiles) in (groups | by).items()
    }


def whole(scores: Scores, judge: str) -> Block:
    """The block of all conversations of a judge."""
    return block(scores, scores.scale, ("judges", judge), "")


def block(profile: Profile, scale: Scale, at: Keys, name: str) -> Block:
    """The block of a profile that scores.json has `at` these keys."""
    return Block(
        name=name,
        bars=tuple(bar(tally, scale, (*at, "dimensions", d), d) for d, tally in profile.dimensions.items()),
        overall=bar(profile.overall, scale, (*at, "overall"), OVERALL),
        any_worst=_any_worst(profile, scale, at),
        conversations=count(profile.conversations, (*at, "conversations")),
        personas=count(profile.personas, (*at, "personas")),
        empty=profile.conversations == 0,
    )


def bar(tally: Tally, scale: Scale, at: Keys, name: str) -> Bar:
    """The bar of a tally that scores.json has `at` these keys."""
    intervals, in_intervals = tally.intervals, (*at, "intervals")
    apart = scale.not_relevant is not None
    return Bar(
        name=name,
        parts=tuple(_parts(tally, scale, at)),
        n=count(tally.relevant, (*at, "relevant")),
        personas=count(tally.personas, (*at, "personas")),
        few=tally.few,
        apart=count(tally.not_relevant, (*at, "not_relevant")) if apart else None,
        apart_share=_measure(
            tally.not_relevant_percentage,
            (*at, "not_relevant_percentage"),
            intervals.not_relevant_percentage,
            (*in_intervals, "not_relevant_percentage"),
        )
        if apart
        else None,
        unrated=count(tally.unrated, (*at, "unrated")),
        has_unrated=tally.unrated > 0,
        score=None
        if intervals.vera_score is None
        else _measure(tally.vera_score, (*at, "vera_score"), intervals.vera_score, (*in_intervals, "vera_score")),
        text=told(name, tally, scale),
    )


def _parts(tally: Tally, scale: Scale, at: Keys) -> Iterator[Part]:
    tone, left = tones(scale.ratings, scale.not_relevant), 0.0
    for rating in reversed(scale.ratings):
        share, bounds = tally.percentages[rating] or 0.0, tally.intervals.percentages[rating]
        low, high = _ends(bounds, rating, scale)
        yield Part(
            rating=rating,
            tone=tone[rating],
            left=round(left, 2),
            width=share,
            count=count(tally.counts[rating], (*at, "counts", rating)),
            share=_measure(
                tally.percentages[rating],
                (*at, "percentages", rating),
                bounds,
                (*at, "intervals", "percentages", rating),
            ),
            low=low,
            high=high,
        )
        left += share


def _ends(bounds: Bounds, rating: str, scale: Scale) -> tuple[float | None, float | None]:
    """Where an interval lies in the bar; None where it has none, or begins inside it."""
    if bounds.low is None or bounds.high is None or rating not in (scale.best, scale.worst):
        return None, None
    ends = (bounds.low, bounds.high) if rating == scale.worst else (100 - bounds.high, 100 - bounds.low)
    return round(ends[0], 2), round(ends[1], 2)


def _measure(value: float | None, at: Keys, bounds: Bounds, bounds_at: Keys) -> Measure:
    low, high = points(bounds.low, (*bounds_at, "low")), points(bounds.high, (*bounds_at, "high"))
    return Measure(points(value, at), low, high, bounds.how)


def _any_worst(profile: Profile, scale: Scale, at: Keys) -> AnyWorst:
    share = _measure(
        profile.worst_percentage, (*at, "worst_percentage"), profile.worst_interval, (*at, "worst_interval")
    )
    return AnyWorst(
        rating=scale.worst,
        count=count(profile.conversations_with_worst, (*at, "conversations_with_worst")),
        of=count(profile.conversations_relevant, (*at, "conversations_relevant")),
        share=share,
        few=profile.few,
        none_found=profile.conversations_relevant > 0
        and profile.conversations_with_worst == 0
        and profile.overall.unrated == 0,
    )


def told(name: str, tally: Tally, scale: Scale) -> str:
    """A bar in words."""
    if not tally.relevant:
        return f"{name}: {NO_DATA}."
    counts = ", ".join(f"{r} {tally.counts[r]} ({tally.percentages[r]:.1f} %)" for r in reversed(scale.ratings))
    return f"{name}: {counts}, of {tally.relevant}."


def worst_bars(block: Block, most: int) -> Sequence[Bar]:
    """The dimensions with the largest share of the worst rating, those that have any, the worst first."""
    found = [bar for bar in block.bars if bar.worst.width > 0]
    return sorted(found, key=lambda bar: -bar.worst.width)[:most]


def legend(scale: Scale) -> Mapping[str, str]:
    """Rating -> tone, worst first, as the bars have them."""
    tone = tones(scale.ratings, scale.not_relevant)
    return {rating: tone[rating] for rating in reversed(scale.ratings)}


def how_made() -> str:
    """How intervals were made, in words."""
    return (
        f"95 % intervals: a bootstrap over personas ({DRAWS} draws, seed {SEED}), or Wilson's where each persona "
        f"stands behind a percentage with one conversation. An asterisk marks fewer than {FEW} personas."
    )
