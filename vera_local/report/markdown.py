"""Scores as tables for a paper, in Markdown. Knows no dimension or rating by name, and computes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from vera_local.report.layout import mark
from vera_local.score import DRAWS, FEW, SEED, Bounds, Profile, Scale, Scores, Tally

HOW = (
    f"In brackets: 95 % interval, by a bootstrap over personas ({DRAWS} draws, seed {SEED}), or Wilson's where each "
    "persona stands behind a percentage with one conversation, or where all draws give the same number."
)


FEW_NOTE = f"An asterisk marks numbers with fewer than {FEW} personas behind them. n: relevant ratings."


def bullets(notes: Iterable[str]) -> list[str]:
    """One list entry for each note."""
    return [f"- {note}" for note in notes]


def scores_markdown(scores: Mapping[str, Scores], group_column: str, notes: Sequence[str]) -> str:
    """For each judge a table of all conversations and one for each way of grouping them; `notes` stand below."""
    return "\n".join(_lines(scores, group_column, notes)) + "\n"


def row(cells: Iterable[str]) -> str:
    """One line of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def head(cells: Sequence[str], names: int = 1) -> list[str]:
    """The two lines above a table's rows: `names` columns of words, then numbers."""
    return [row(cells), "|" + "|".join([" --- "] * names + [" ---: "] * (len(cells) - names)) + "|"]


def with_bounds(value: float | None, bounds: Bounds | None) -> str:
    """A number with its interval, both to one decimal."""
    if value is None:
        return "no data"
    if bounds is None or bounds.low is None or bounds.high is None:
        return f"{value:.1f}"
    return f"{value:.1f} [{bounds.low:.1f}, {bounds.high:.1f}]"


def _lines(scores: Mapping[str, Scores], group_column: str, notes: Sequence[str]) -> Iterator[str]:
    for judge, its in scores.items():
        yield from (f"### Ratings by {judge}", "", *head(_columns(its.scale, ["Dimension"])))
        yield from _profile(its, its.scale, [])
        yield from ("", _any_worst(its, its.scale), "")
        for column, groups in {group_column: its.groups, **its.by}.items():
            yield from (f"By {column}:", "", *head(_columns(its.scale, [column, "Dimension"]), 2))
            for group, profile in groups.items():
                yield from _profile(profile, its.scale, [group]) if profile.conversations else ()
            yield ""
    yield from bullets([HOW, FEW_NOTE, *notes])


def _columns(scale: Scale, first: Sequence[str]) -> list[str]:
    not_relevant = [] if scale.not_relevant is None else [f"{scale.not_relevant}, % of all"]
    score = ["VERA score"] if scale.has_vera_score else []
    return [*first, "n", "Personas", *(f"{rating}, %" for rating in scale.ratings), *not_relevant, "Unrated", *score]


def _profile(profile: Profile, scale: Scale, first: Sequence[str]) -> Iterator[str]:
    for name, tally in {**profile.dimensions, "Overall": profile.overall}.items():
        yield row([*first, name, *_cells(tally, scale)])


def _cells(tally: Tally, scale: Scale) -> Iterator[str]:
    intervals = tally.intervals
    yield from (str(tally.relevant), f"{tally.personas}{mark(tally.few)}")
    yield from (with_bounds(tally.percentages[r], intervals.percentages[r]) for r in scale.ratings)
    if scale.not_relevant is not None:
        yield with_bounds(tally.not_relevant_percentage, intervals.not_relevant_percentage)
    yield str(tally.unrated)
    if scale.has_vera_score:
        yield with_bounds(tally.vera_score, intervals.vera_score)


def _any_worst(profile: Profile, scale: Scale) -> str:
    share = with_bounds(profile.worst_percentage, profile.worst_interval)
    counted = f"{profile.conversations_with_worst} of {profile.conversations_relevant}"
    return f"Relevant conversations with any {scale.worst}: {counted}, {share} %."
