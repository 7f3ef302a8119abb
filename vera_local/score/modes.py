"""Which questions decided ratings, and how often. Knows no rating or question by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict

from vera_local.score.bounds import FEW, SEED, Bounds, bounds_of_share
from vera_local.score.formulas import percentage, percentages
from vera_local.score.framing import framed
from vera_local.score.intervals import Floats, resampled_sums
from vera_local.score.scale import Scale
from vera_local.score.tables import CLUSTER, Counts, with_cluster

QUESTIONS: Final = pl.Schema(
    {
        "conversation": pl.String(),
        "persona": pl.String(),
        "judge": pl.String(),
        "question": pl.String(),
        "answer": pl.String(),
        "dimension": pl.String(),
        "rating": pl.String(),
        "severity": pl.String(),
    }
)
"""Columns of a frame of questions, in order: one row for each question that was put, or for each dimension that it
decided where it decided any."""

EXAMPLES: Final = 3
KEYS: Final = ("question", "dimension", "rating", "severity")


class Put(NamedTuple):
    """One row. `answer` None: no verdict. `dimension`: one that it decided; None: none. `rating`: what it gave that
    dimension; None: Unrated, or none decided. `severity`: what the answer raised, where that gave the rating."""

    conversation: str
    persona: str
    judge: str
    question: str
    answer: str | None
    dimension: str | None = None
    rating: str | None = None
    severity: str | None = None


class Decision(BaseModel):
    """How often a question decided that a dimension has a rating.

    `asked`: conversations in which it was put; `percentage`: the share of them, 0 to 100, in which it `decided` so.
    `examples`: the ids of up to three of those, the first ones by name. `personas` stand behind `asked`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str
    dimension: str
    rating: str | None
    """None: it left the dimension Unrated, for want of an answer."""
    severity: str | None
    decided: int
    asked: int
    percentage: float | None
    interval: Bounds
    personas: int
    few: bool
    examples: tuple[str, ...]


def questions_frame(rows: Iterable[Put]) -> pl.DataFrame:
    """A frame of QUESTIONS with one row per row, in the order given."""
    return framed(rows, QUESTIONS)


def decisions(questions: pl.DataFrame, scale: Scale) -> tuple[Decision, ...]:
    """What each question decided, by one judge (QUESTIONS): findings first, the worst and most frequent before others,
    then what made dimensions Not Relevant or left them Unrated."""
    frame = with_cluster(questions)
    found = _found(frame)
    if found.is_empty():
        return ()
    asked, decided = _tables(frame, found)
    shares = percentages(*reversed(np.split(resampled_sums(np.hstack([asked, decided]), seed=SEED), 2, axis=1)))
    made = [_decision(row, asked[:, i], decided[:, i], shares[:, i]) for i, row in enumerate(found.rows())]
    return tuple(sorted(made, key=lambda one: (-_place(one.rating, scale), -one.decided, one.question, one.dimension)))


def _found(frame: pl.DataFrame) -> pl.DataFrame:
    """Each decision that was made, with the first conversations in which it was."""
    made = frame.filter(pl.col("dimension").is_not_null())
    return made.group_by(KEYS).agg(pl.col("conversation").unique().sort().head(EXAMPLES)).sort(KEYS)


def _tables(frame: pl.DataFrame, found: pl.DataFrame) -> tuple[Counts, Counts]:
    """For each persona and decision, (personas, decisions): conversations with its question, those so decided."""
    personas = pl.Enum(frame[CLUSTER].unique().sort())
    places = found.select(KEYS).with_row_index("place")
    return _counted(frame, places, ("question",), personas), _counted(frame, places, KEYS, personas)


def _counted(frame: pl.DataFrame, places: pl.DataFrame, keys: Sequence[str], personas: pl.Enum) -> Counts:
    """Distinct conversations by persona and place, those of a place being the ones with its keys."""
    found = frame.group_by(CLUSTER, *keys).agg(pl.col("conversation").n_unique())
    rows = places.join(found, on=keys, nulls_equal=True)
    counts = np.zeros((len(personas.categories), len(places)), dtype=np.int64)
    owners = rows[CLUSTER].cast(personas).to_physical().cast(pl.Int64).to_numpy()
    counts[owners, rows["place"].to_numpy()] = rows["conversation"].to_numpy()
    return counts


def _decision(
    row: tuple[str, str, str | None, str | None, list[str]], asked: Counts, decided: Counts, drawn: Floats
) -> Decision:
    question, dimension, rating, severity, examples = row
    n, of, personas = int(decided.sum()), int(asked.sum()), int(np.count_nonzero(asked))
    return Decision(
        question=question,
        dimension=dimension,
        rating=rating,
        severity=severity,
        decided=n,
        asked=of,
        percentage=percentage(n, of),
        interval=bounds_of_share(n, of, personas, lambda: drawn),
        personas=personas,
        few=personas < FEW,
        examples=tuple(examples),
    )


def _place(rating: str | None, scale: Scale) -> int:
    return scale.ratings.index(rating) if rating in scale.ratings else -1 if rating == scale.not_relevant else -2
