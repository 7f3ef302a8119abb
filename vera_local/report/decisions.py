"""Failure modes as a table for the terminal. Knows no rubric: whoever asks brings the questions' words."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from vera_local.report.layout import mark, plain_table, span
from vera_local.score import Decision, Scores

SHOWN = 12
_QUESTION_WIDTH = 90


def findings(scores: Scores) -> tuple[Decision, ...]:
    """The decisions that gave a rating below the best, the worst and most frequent first."""
    return tuple(d for d in scores.decisions if d.rating in scores.scale.ratings[1:])


def failure_modes(scores: Scores, words: Mapping[str, str]) -> RenderableType:
    """Which questions decided ratings below the best; `words`: question id -> its text, as far as known."""
    found = findings(scores)
    if not found:
        return Text("No question decided a rating below the best.")
    table = plain_table("Question that decided", ["Times", "of asked", "%", "95 %"])
    table.add_column(Text("For example"), overflow="fold")
    for one in found[:SHOWN]:
        table.add_row(_named(one, words), *_cells(one))
    table.caption = Text(_legend(found))
    return table


def _named(one: Decision, words: Mapping[str, str]) -> Text:
    text = textwrap.shorten(words.get(one.question, ""), _QUESTION_WIDTH, placeholder=" …")
    severity = f" ({one.severity})" if one.severity else ""
    return Text(f"{one.question} {text}".rstrip() + f"\n{one.dimension}: {one.rating}{severity}")


def _cells(one: Decision) -> Sequence[Text]:
    share = "" if one.percentage is None else f"{one.percentage:.1f}{mark(one.few)}"
    return [Text(t) for t in (str(one.decided), str(one.asked), share, span(one.interval), "\n".join(one.examples))]


def _legend(found: Sequence[Decision]) -> str:
    rest = f" {len(found) - SHOWN} more are in scores.json." if len(found) > SHOWN else ""
    return f"%: of the conversations in which the question was asked.{rest}"
