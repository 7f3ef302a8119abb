"""The questions of a run as a table: what was answered, and what that decided. Knows no score and no store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from vera_local.bundle import DimensionRating, Rubric
from vera_local.report.verdicts import VerdictRow
from vera_local.run.juries import Rated
from vera_local.score import Put, questions_frame


def asked_frame(rows: Iterable[VerdictRow], rated: Rated, rubric: Rubric, personas: Mapping[str, str]) -> pl.DataFrame:
    """A frame of QUESTIONS of these verdicts and of what they decided; `personas`: conversation -> its persona."""
    return questions_frame(
        Put(row.conversation, personas[row.conversation], row.judge, row.question, row.answer, *outcome)
        for row in rows
        for outcome in _outcomes(rubric, row.question, rated.get(row.judge, {}).get(row.conversation, ()))
    )


def _outcomes(
    rubric: Rubric, question: str, ratings: Iterable[DimensionRating]
) -> list[tuple[str | None, str | None, str | None]]:
    """Dimension, rating and severity of each decision of a question; one empty row where there is none."""
    severities = {rating: severity for severity, rating in rubric.severities.items()}
    made = [(r.dimension, r.rating, severities.get(r.rating or "")) for r in ratings if question in r.decided_by]
    return [*made] or [(None, None, None)]
