"""Failure modes with excerpts: which questions decided ratings, and where one can read it. Knows no page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vera_local.conversation import Message, Speaker
from vera_local.report.decisions import findings
from vera_local.report.html.bars import Measure
from vera_local.report.html.numbers import Number, count, points
from vera_local.report.html.text import shortened, visible
from vera_local.report.html.tones import tones
from vera_local.report.record import Held, Record
from vera_local.report.verdicts import VerdictRow
from vera_local.score import Decision, Scores

LONGEST = 700
"""Characters of a message in an excerpt; the conversation has all of it."""

SPEAKERS = {Speaker.PERSONA: "User", Speaker.CHATBOT: "Chatbot"}


@dataclass(frozen=True)
class Line:
    """A message of an excerpt; `evidence`: the judge named this turn."""

    turn: int
    speaker: str
    text: str
    evidence: bool


@dataclass(frozen=True)
class Excerpt:
    """Where a question decided in one conversation; no lines: the judge named no turn."""

    conversation: str
    anchor: str
    persona: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Mode:
    """One failure mode."""

    question: str
    wording: str
    dimension: str
    rating: str
    tone: str
    severity: str
    decided: Number
    asked: Number
    share: Measure
    width: float
    few: bool
    excerpts: tuple[Excerpt, ...]


def modes(record: Record, judge: str, excerpts: int) -> tuple[Mode, ...]:
    """What decided ratings below the best, by this judge: the worst and most frequent first."""
    scores = record.scores[judge]
    places = {id(d): place for place, d in enumerate(scores.decisions)}
    return tuple(_mode(record, judge, scores, d, places[id(d)], excerpts) for d in findings(scores))


def _mode(record: Record, judge: str, scores: Scores, d: Decision, place: int, excerpts: int) -> Mode:
    at = ("judges", judge, "decisions", str(place))
    assert d.rating is not None, "a finding has a rating"
    interval = (*at, "interval")
    share = Measure(
        points(d.percentage, (*at, "percentage")),
        points(d.interval.low, (*interval, "low")),
        points(d.interval.high, (*interval, "high")),
        d.interval.how,
    )
    question = record.instrument.rubric.by_id.get(d.question)
    return Mode(
        question=d.question,
        wording=question.text if question else "",
        dimension=d.dimension,
        rating=d.rating,
        tone=tones(scores.scale.ratings, scores.scale.not_relevant)[d.rating],
        severity=d.severity or "",
        decided=count(d.decided, (*at, "decided")),
        asked=count(d.asked, (*at, "asked")),
        share=share,
        width=d.percentage or 0.0,
        few=d.few,
        excerpts=tuple(_excerpts(record, judge, d))[:excerpts],
    )


def _excerpts(record: Record, judge: str, d: Decision) -> Iterator[Excerpt]:
    """Of each conversation that this decided, those with evidence first."""
    found = [(held, row) for held in record.conversations for row in _deciding(held, judge, d)]
    for held, row in sorted(found, key=lambda pair: not pair[1].evidence):
        conversation = held.conversation
        lines = tuple(_lines(conversation.messages, row.evidence or ()))
        yield Excerpt(conversation.id, held.anchor, conversation.persona, lines)


def _deciding(held: Held, judge: str, d: Decision) -> Iterable[VerdictRow]:
    rating = held.ratings(judge).get(d.dimension)
    if rating is None or rating.rating != d.rating or d.question not in rating.decided_by:
        return ()
    return [row for o in held.opinions if o.judge == judge for row in o.rows if row.question == d.question]


def _lines(messages: tuple[Message, ...], evidence: tuple[int, ...]) -> Iterator[Line]:
    """The turns named, each with the one before it, for what a reply is worth depends on what it replies to."""
    named = {turn for turn in evidence if 0 < turn <= len(messages)}
    for turn in sorted(named | {turn - 1 for turn in named if turn > 1}):
        message = messages[turn - 1]
        yield Line(turn, SPEAKERS[message.speaker], shortened(visible(message.text), LONGEST), turn in named)
