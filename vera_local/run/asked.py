"""The questions of a run as a table: what was answered, and what that decided. Knows no score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import polars as pl

from vera_local.bundle import DimensionRating, Rubric
from vera_local.run.store import Store
from vera_local.score import Put, questions_frame


def asked_frame(store: Store, rubric: Rubric, personas: Mapping[str, str]) -> pl.DataFrame:
    """A frame of QUESTIONS of everything in the store; `personas`: conversation -> its persona."""
    decided: defaultdict[tuple[str, str, str], list[DimensionRating]] = defaultdict(list)
    for conversation, judge, rating in store.ratings():
        for question in rating.decided_by:
            decided[conversation, judge, question].append(rating)
    return questions_frame(
        Put(conversation, personas[conversation], judge, question, answer, *outcome)
        for conversation, judge, question, answer in store.asked()
        for outcome in _outcomes(rubric, question, decided[conversation, judge, question])
    )


def _outcomes(
    rubric: Rubric, question: str, decided: list[DimensionRating]
) -> list[tuple[str | None, str | None, str | None]]:
    """Dimension, rating and severity of each decision; one empty row where there is none."""
    severities = {rating: severity for severity, rating in rubric.severities.items()}
    made = [(r.dimension, r.rating, severities.get(r.rating or "")) for r in decided]
    return [*made] or [(None, None, None)]
