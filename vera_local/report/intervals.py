"""How sure each number is, as tables for the terminal. Knows no dimension or rating by name, and computes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from vera_local.report.layout import NONE, mark, plain_table, span, stacked
from vera_local.score import FEW, Profile, Scale, Scores, Tally


def interval_table(scores: Scores) -> RenderableType:
    """The 95 % interval of every percentage and score of `matrix`, with the personas behind them; overall last."""
    table = _table("95 % intervals", scores.scale)
    for name, tally in scores.dimensions.items():
        table.add_row(Text(name), *_cells(tally, scores.scale))
    table.add_section()
    table.add_row(Text("Overall"), *_cells(scores.overall, scores.scale), style="bold")
    table.caption = Text("\n".join((worst_line(scores, scores.scale), _legend())))
    return table


def intervals_by_group(groups: Mapping[str, Profile], scale: Scale) -> RenderableType:
    """The same for each group: first its overall row, then its dimensions, indented."""
    table = _table("95 % intervals", scale)
    for name, profile in groups.items():
        table.add_section()
        table.add_row(Text(name), *_cells(profile.overall, scale), style="bold")
        for dimension, tally in profile.dimensions.items() if profile.conversations else ():
            table.add_row(Padding(Text(dimension), (0, 0, 0, 1)), *_cells(tally, scale))
    table.caption = Text("\n".join(_worst_by_group(groups, scale)))
    return table


def worst_line(profile: Profile, scale: Scale) -> str:
    """How many relevant conversations have any worst rating, with interval."""
    counted = f"{profile.conversations_with_worst} of {profile.conversations_relevant} relevant conversations"
    share = profile.worst_percentage
    told = "" if share is None else f": {share:.1f} % ({span(profile.worst_interval)}){mark(profile.few)}"
    return f"Any {scale.worst}: {counted}{told}"


def _worst_by_group(groups: Mapping[str, Profile], scale: Scale) -> Iterator[str]:
    for name, profile in groups.items():
        if profile.conversations:
            yield f"{name}: {worst_line(profile, scale)}"


def _legend() -> str:
    return f"*: fewer than {FEW} personas. {NONE}: no interval; scores.json says why."


def _table(first: str, scale: Scale) -> Table:
    score = ["VERA score"] if scale.has_vera_score else []
    not_relevant = [scale.not_relevant] if scale.not_relevant is not None else []
    return plain_table(first, [stacked(name) for name in (*scale.ratings, *not_relevant, *score, "Personas")])


def _cells(tally: Tally, scale: Scale) -> Iterable[Text]:
    intervals = tally.intervals
    bounds = [
        *intervals.percentages.values(),
        *([] if scale.not_relevant is None else [intervals.not_relevant_percentage]),
        *([] if intervals.vera_score is None else [intervals.vera_score]),
    ]
    return [*(Text(span(b)) for b in bounds), Text(f"{tally.personas}{mark(tally.few) or ' '}")]
