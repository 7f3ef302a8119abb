"""Runs as a report gets them, made of nothing: any number of conversations with any text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vera_local.bundle import Action, DimensionRating, Do, Option, Question, Rubric
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.report.reading import Opinion
from vera_local.report.record import Held, Instrument, JudgeRecord, Record
from vera_local.report.usage import Work
from vera_local.report.verdicts import VerdictRow
from vera_local.score import Put, Rating, Scale, questions_frame, ratings_frame, score_by_judge

RATINGS = ("good", "fair", "bad")
DIMENSIONS = ("Warmth", "Care")
SEVERITIES = {"medium": "fair", "high": "bad"}
GROUPS = ("None", "High")
JUDGE = "j/udge ~1"
"""With characters that a JSON pointer escapes."""


def rubric(questions: int = 2) -> Rubric:
    """As many questions in each dimension; Yes to any of them is the worst."""
    step = Action(Do.NEXT_QUESTION)
    options = (Option("Yes", step, "high"), Option("No", step))
    asked = tuple(
        Question(f"{d[0]}{n}", d, f"Does it fail in {d} <{n}>?", "", options)
        for d in DIMENSIONS
        for n in range(1, questions + 1)
    )
    return Rubric("try_out", "1.0", RATINGS, "n/a", SEVERITIES, DIMENSIONS, asked)


def held(
    place: int,
    messages: Sequence[str],
    *,
    questions: int = 2,
    rationale: str = "because",
    answer: Callable[[int, str], str] = lambda place, question: "Yes" if place % 3 == 0 else "No",
    evidence: tuple[int, ...] = (2,),
    judge: str = JUDGE,
) -> Held:
    """A conversation with every question answered, and rated by the answers."""
    sides = (Speaker.PERSONA, Speaker.CHATBOT)
    said = tuple(Message(sides[i % 2], text) for i, text in enumerate(messages))
    c = Conversation(f"id-{place}", f"Persona{place}", 1, said, Ending.TURNS)
    asked = rubric(questions).questions
    rows = tuple(
        VerdictRow(
            c.id, judge, q.id, n, "answered", answer(place, q.id), "direct", evidence, rationale, 0.9, 0.95, "", "", ""
        )
        for n, q in enumerate(asked, 1)
    )
    ratings = []
    for d in DIMENSIONS:
        found = tuple(q.id for q, r in zip(asked, rows, strict=True) if q.dimension == d and r.answer == "Yes")
        ratings.append(DimensionRating(d, "bad" if found else "good", found))
    return Held(place, c, GROUPS[place % 2], (Opinion(judge, tuple(ratings), rows),))


def record(conversations: Sequence[Held], *, questions: int = 2, judge: str = JUDGE) -> Record:
    """A run of these, rated by one judge."""
    ratings = [
        Rating(h.conversation.id, h.conversation.persona, h.group, 1, judge, r.dimension, r.rating)
        for h in conversations
        for r in h.ratings(judge).values()
    ]
    put = [
        Put(
            row.conversation, h.conversation.persona, judge, row.question, row.answer, *_decided(h, judge, row.question)
        )
        for h in conversations
        for o in h.opinions
        for row in o.rows
    ]
    scale = Scale(RATINGS, "n/a", DIMENSIONS, GROUPS)
    its = rubric(questions)
    return Record(
        name="run",
        created="2026-01-02T03:04:05+00:00",
        instrument=Instrument("try_out", "Try-out", "1.0", "Own wording.", "Risk", its),
        chatbot="bot",
        players=("sim",),
        judges=(JudgeRecord(judge, "model", "direct"),),
        conversations=tuple(conversations),
        scores=score_by_judge(ratings_frame(ratings), scale, questions=questions_frame(put)),
        manifest={"identity": {"bundle": {"name": "try_out", "files": {"rubric.yaml": "d1"}}}, "fingerprint": "f1"},
        commands=("vera-local run --config run.toml --out NEW",),
        work=Work((), (), (), {}, len(conversations), 0),
    )


def _decided(h: Held, judge: str, question: str) -> tuple[str | None, str | None, str | None]:
    for r in h.ratings(judge).values():
        if question in r.decided_by:
            return r.dimension, r.rating, "high"
    return None, None, None
