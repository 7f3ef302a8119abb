"""Conversations as the data that a page shows them from, one by one. Knows no script: it only holds data."""

from __future__ import annotations

from typing import Any

from vera_local.conversation import Speaker
from vera_local.report.html.tones import NOT_RELEVANT, UNRATED, tones
from vera_local.report.reading import UNRATED as UNRATED_WORD
from vera_local.report.reading import Opinion
from vera_local.report.record import Held, Instrument
from vera_local.report.terminal import ENDINGS
from vera_local.report.verdicts import VerdictRow

SIDES = {Speaker.PERSONA: "u", Speaker.CHATBOT: "c"}


def rubric_data(instrument: Instrument) -> dict[str, Any]:
    """What all conversations share: the questions' words, and the tone of each rating."""
    rubric = instrument.rubric
    return {
        "questions": {q.id: {"text": q.text, "dimension": q.dimension} for q in rubric.questions},
        "dimensions": list(rubric.dimensions),
        "tones": tones(rubric.ratings, rubric.not_relevant),
        "best": rubric.ratings[0],
        "unrated": {"word": UNRATED_WORD, "tone": UNRATED},
        "apart": NOT_RELEVANT,
    }


def conversation_data(held: Held) -> dict[str, Any]:
    """One conversation: its turns, and each judge's ratings and path."""
    c = held.conversation
    return {
        "id": c.id,
        "persona": c.persona,
        "group": held.group,
        "repeat": c.repeat,
        "ending": ENDINGS[c.ending],
        "turns": [[SIDES[m.speaker], m.text] for m in c.messages],
        "judges": [_opinion(o) for o in held.opinions if o.ratings or o.rows],
    }


def _opinion(opinion: Opinion) -> dict[str, Any]:
    return {
        "name": opinion.judge,
        "members": list(opinion.members),
        "ratings": [[r.dimension, r.rating, list(r.decided_by)] for r in opinion.ratings],
        "path": [_step(row) for row in opinion.rows],
    }


def _step(row: VerdictRow) -> dict[str, Any]:
    """A verdict; what is empty is left out, for there may be very many."""
    step = {
        "q": row.question,
        "a": row.answer,
        "state": row.state,
        "mode": row.mode,
        "turns": None if row.evidence is None else list(row.evidence),
        "why": row.rationale.strip(),
        "p": None if row.probability is None else round(row.probability, 4),
        "mass": None if row.mass is None else round(row.mass, 4),
        "doubt": row.doubt,
        "hidden": row.left_out,
        "detail": row.detail,
    }
    return {key: value for key, value in step.items() if value is not None and value != ""}
