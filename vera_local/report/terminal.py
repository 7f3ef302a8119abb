"""Scores as tables and lines for the terminal. Knows no dimension or rating by name, and prints nothing itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from vera_local.conversation import Conversation, Ending, Head
from vera_local.report.layout import plain_table, stacked
from vera_local.score import Profile, Scale, Scores, Tally

NO_DATA = "no data"
"""Stands where a number would need at least one relevant rating."""

ENDINGS: dict[Ending | None, str] = {
    Ending.TURNS: "reached the set turns",
    Ending.PERSONA: "ended by the persona",
    Ending.WORDS: "reached the set words",
    Ending.RECORDED: "recorded elsewhere",
    Ending.OVERFLOW: "too long for a model's context",
    Ending.SIMULATOR: "no usable persona message",
    Ending.CHATBOT: "chatbot failed",
    Ending.ERROR: "engine failed",
    None: "not finished",
}


def matrix(scores: Scores) -> RenderableType:
    """Dimensions by ratings with counts and percentages, overall last; 80 columns are enough for usual names."""
    return _Fitted(partial(_matrix, scores))


def by_group(scores: Scores) -> RenderableType:
    """The same counts for each group: first its overall row, then its dimensions, indented."""
    return by_value(scores.groups, scores.scale)


def by_value(groups: Mapping[str, Profile], scale: Scale) -> RenderableType:
    """`by_group` for the groups of any persona column."""
    table = _table("Group", scale)
    for name, profile in groups.items():
        table.add_section()
        table.add_row(Text(name), *_cells(profile.overall, scale, _count), style="bold")
        for dimension, tally in profile.dimensions.items() if profile.conversations else ():
            table.add_row(Padding(Text(dimension), (0, 0, 0, 1)), *_cells(tally, scale, _count))
    table.caption = Text("The first row of each group counts all its dimensions together.")
    return table


def summary_lines(conversations: Sequence[Conversation | Head], scores: Mapping[str, Scores]) -> list[str]:
    """How the conversations ended, then one line for each judge (the keys of `scores`)."""
    endings = Counter(conversation.ending for conversation in conversations)
    told = "".join(f", {words}: {endings[ending]}" for ending, words in ENDINGS.items() if endings[ending])
    judgeable = sum(conversation.judgeable for conversation in conversations)
    return [
        f"Conversations: {len(conversations)}{told}",
        f"Conversations fit to judge: {judgeable}",
        *(_judge_line(judge, its) for judge, its in scores.items()),
    ]


def _judge_line(judge: str, scores: Scores) -> str:
    worst = scores.scale.ratings[-1]
    return (
        f"Judge {judge}: conversations judged: {scores.conversations}, "
        f"with any {worst}: {scores.conversations_with_worst}, "
        f"Unrated: {scores.overall.unrated} of {scores.overall.total} ratings"
    )


@dataclass(frozen=True)
class _Fitted:
    """A table whose cells stand side by side where they fit, else one below the other."""

    build: Callable[[str], Table]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        wide = self.build(" ")
        needed = console.measure(wide, options=options.update(width=10 * options.max_width)).maximum
        yield wide if needed <= options.max_width else self.build("\n")


def _matrix(scores: Scores, between: str) -> Table:
    table = _table("Dimension", scores.scale)
    show = partial(_count_and_percentage, between)
    for name, tally in scores.dimensions.items():
        table.add_row(Text(name), *_cells(tally, scores.scale, show))
    table.add_section()
    table.add_row(Text("Overall"), *_cells(scores.overall, scores.scale, show), style="bold")
    table.caption = Text(_legend(scores.scale))
    return table


def _legend(scale: Scale) -> str:
    if scale.not_relevant is None:
        return "n: ratings given; percentages are of n."
    return f"n: relevant ratings; percentages are of n, those of {scale.not_relevant} of all ratings."


def _table(first: str, scale: Scale) -> Table:
    score = ["VERA score"] if scale.has_vera_score else []
    not_relevant = [scale.not_relevant] if scale.not_relevant is not None else []
    return plain_table(first, [stacked(name) for name in (*scale.ratings, "n", *not_relevant, "Unrated", *score)])


def _cells(tally: Tally, scale: Scale, show: Callable[[int, float | None], str]) -> list[Text]:
    ratings = [show(tally.counts[rating], tally.percentages[rating]) for rating in scale.ratings]
    share = tally.not_relevant_percentage
    not_relevant = [] if scale.not_relevant is None else [show(tally.not_relevant, share)]
    score = [_number(tally.vera_score)] if scale.has_vera_score else []
    return [Text(cell) for cell in (*ratings, str(tally.relevant), *not_relevant, str(tally.unrated), *score)]


def _count(count: int, percentage: float | None) -> str:
    return str(count)


def _count_and_percentage(between: str, count: int, percentage: float | None) -> str:
    return f"{count}{between}{_number(percentage, '%')}"


def _number(value: float | None, unit: str = "") -> str:
    return NO_DATA if value is None else f"{value:.2f}{unit}"
