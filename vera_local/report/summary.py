"""A run in a page of Markdown, for a pull request. Knows no run folder and computes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vera_local.report.decisions import findings
from vera_local.report.html.bars import OVERALL
from vera_local.report.html.text import visible
from vera_local.report.layout import mark
from vera_local.report.markdown import FEW_NOTE, HOW, bullets, head, row, with_bounds
from vera_local.report.record import DEMONSTRATION, LIMITS, Record
from vera_local.score import Decision, Scale, Scores, Tally

MODES_SHOWN = 5

_MARKUP = re.compile(r"[\\`*_\[\]~]")


def summary_markdown(record: Record) -> str:
    """Ratings, failure modes and what must be known of them, by the judge whose ratings stand first."""
    return "\n".join(_lines(record)) + "\n"


def _lines(record: Record) -> Iterator[str]:
    instrument = record.instrument
    yield f"### {_plain(record.chatbot)}: {_plain(instrument.title)} {_plain(instrument.version)}"
    yield ""
    if record.first is None:
        yield f"{len(record.conversations)} conversations; none has been rated yet."
    else:
        yield from _rated(record, record.first, record.scores[record.first])
    yield from ("", "Notes:", "", *bullets(map(_plain, _notes(record))))
    yield from ("", "To make it again:", "")
    yield from (f"    {' '.join(visible(command).split())}" for command in record.commands)


def _rated(record: Record, judge: str, scores: Scores) -> Iterator[str]:
    yield _headline(scores)
    yield ""
    yield f"{len(record.conversations)} conversations, rated by {_plain(judge)}."
    yield ""
    yield from head(_columns(scores.scale))
    for name, tally in {**scores.dimensions, OVERALL: scores.overall}.items():
        yield row([_plain(name), *_cells(tally, scores.scale)])
    yield from _modes(record, judge, scores)


def _headline(scores: Scores) -> str:
    if scores.worst_percentage is None:
        return "**No conversation has a relevant rating.**"
    share = with_bounds(scores.worst_percentage, scores.worst_interval)
    counted = f"{scores.conversations_with_worst} of {scores.conversations_relevant}{_plain(mark(scores.few))}"
    return f"**{_plain(scores.scale.worst)} in {counted} relevant conversations, {share} %.**"


def _columns(scale: Scale) -> list[str]:
    not_relevant = [] if scale.not_relevant is None else [scale.not_relevant]
    score = ["VERA score"] if scale.has_vera_score else []
    ratings = [*reversed(scale.ratings)]
    return [*map(_plain, ["Dimension", *ratings, f"{scale.worst}, %", "n", *not_relevant, "Unrated", *score])]


def _cells(tally: Tally, scale: Scale) -> Iterator[str]:
    yield from (str(tally.counts[rating]) for rating in reversed(scale.ratings))
    yield with_bounds(tally.percentages[scale.worst], tally.intervals.percentages[scale.worst])
    yield f"{tally.relevant}{_plain(mark(tally.few))}"
    if scale.not_relevant is not None:
        yield str(tally.not_relevant)
    yield str(tally.unrated)
    if scale.has_vera_score:
        yield with_bounds(tally.vera_score, tally.intervals.vera_score)


def _modes(record: Record, judge: str, scores: Scores) -> Iterator[str]:
    """Of a judge that joins others those of its members, for these have a path of questions."""
    found = findings(scores)
    if found:
        yield from ("", "What decided ratings below the best:", "", *(_mode(record, d) for d in found[:MODES_SHOWN]))
        return
    members = next(j.members for j in record.judges if j.name == judge)
    for member in (m for m in members if findings(record.scores[m])):
        yield from ("", f"What decided ratings below the best, by {_plain(member)}:", "")
        yield from (_mode(record, d) for d in findings(record.scores[member])[:MODES_SHOWN])


def _mode(record: Record, d: Decision) -> str:
    question = record.instrument.rubric.by_id.get(d.question)
    words = f": {' '.join(question.text.split())}" if question else ""
    told = f"{d.dimension}, {d.rating}, {d.decided} of the {d.asked} times it was asked"
    return f"- {_plain(f'Question {d.question}{words} ({told})')}"


def _notes(record: Record) -> Iterator[str]:
    if record.demonstration:
        yield DEMONSTRATION
    yield from record.warnings
    if unfinished := sum(h.conversation.ending is None for h in record.conversations):
        yield f"Unfinished: {unfinished} conversations have not ended."
    yield from (HOW, FEW_NOTE)
    yield f"Run {record.name} of {record.day}."
    yield f"{record.instrument.notice} {LIMITS}"


def _plain(text: str) -> str:
    """Text that may hold what Markdown or HTML would take for its own."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(visible(text).split())).replace("&", "&amp;").replace("<", "&lt;")
