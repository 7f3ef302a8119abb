"""Answers that a person should look at, and those that are missing. Knows no judge."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from vera_local.report.html.text import shortened, visible
from vera_local.report.record import Record

SHOWN = 100
"""Lines of the list in a page; verdicts.csv has all."""

_LONGEST = 200


@dataclass(frozen=True)
class Doubt:
    """One verdict: what is odd about it; `anchor` is that of its conversation."""

    anchor: str
    conversation: str
    judge: str
    question: str
    answer: str
    state: str
    reason: str


@dataclass(frozen=True)
class Doubts:
    """The first of them, how many there are, and how many each judge has: answered, uncertain and by state."""

    shown: tuple[Doubt, ...]
    total: int
    judges: dict[str, Counter[str]]


def doubts(record: Record, *, reasons: bool) -> Doubts:
    """Of every judge that answered; without `reasons` no words that may quote a transcript or a model."""
    found: list[Doubt] = []
    judges: dict[str, Counter[str]] = {}
    for held in record.conversations:
        for opinion in held.opinions:
            for row in opinion.rows:
                tally = judges.setdefault(row.judge, Counter())
                tally["verdicts"] += 1
                tally[row.state] += 1
                tally["uncertain"] += bool(row.doubt)
                if row.doubt or row.answer is None:
                    told = row.doubt or (shortened(visible(row.detail), _LONGEST) if reasons else "")
                    at = (held.anchor, visible(held.conversation.id))
                    found.append(Doubt(*at, row.judge, row.question, row.answer or "", row.state, told))
    missing_first = sorted(found, key=lambda doubt: bool(doubt.answer))
    return Doubts(tuple(missing_first[:SHOWN]), len(found), judges)
