"""The questions of a run as a table: what was answered, and what that decided. Knows no score and no store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from vera_local.bundle import DimensionRating, Rubric
from vera_local.report.verdicts import VerdictRow
from vera_local.run.juries import Rated
from vera_local.score import QUESTIONS, Put
from vera_local.score.framing import Gathered

_COMPACT = pl.Schema(dict.fromkeys(QUESTIONS, pl.Categorical()))
"""Few texts in many rows: each is kept once, and a number in each row."""


class Asked:
    """Takes verdicts, one by one, and makes a frame of them and of what they decided, its columns those of QUESTIONS.

    `personas`: conversation -> its persona.
    """

    def __init__(self, rated: Rated, rubric: Rubric, personas: Mapping[str, str]) -> None:
        self._rated = rated
        self._severities = {rating: severity for severity, rating in rubric.severities.items()}
        self._personas = personas
        self._rows = Gathered(_COMPACT)

    def add(self, row: VerdictRow) -> None:
        """Put the question of a verdict below the others."""
        ratings = self._rated.get(row.judge, {}).get(row.conversation, ())
        for outcome in self._outcomes(row.question, ratings):
            persona = self._personas[row.conversation]
            self._rows.add(Put(row.conversation, persona, row.judge, row.question, row.answer, *outcome))

    def frame(self) -> pl.DataFrame:
        """All that were added, in their order."""
        return self._rows.frame()

    def _outcomes(
        self, question: str, ratings: Iterable[DimensionRating]
    ) -> list[tuple[str | None, str | None, str | None]]:
        """Dimension, rating and severity of each decision of a question; one empty row where there is none."""
        made = [
            (r.dimension, r.rating, self._severities.get(r.rating or "")) for r in ratings if question in r.decided_by
        ]
        return [*made] or [(None, None, None)]
