"""Ratings in VERA-MH's layouts: a table per conversation, results.csv and scores.json. Knows no run and no scoring.

Ratings keep the names that the rubric gives them; the sentences are this project's own.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vera_local.bundle import DimensionRating
from vera_local.report.cells import cell
from vera_local.score import Scale, Scores, Tally
from vera_local.score.formulas import percentage


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One conversation rated by one judge.

    `stem`: of the conversation's file; `reasons`: question id -> what the judge said to it.
    """

    stem: str
    judge: str
    ratings: tuple[DimensionRating, ...]
    reasons: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Origin:
    """Who held the conversations, and the time that names the run (YYYYMMDD_HHMMSS)."""

    persona_model: str
    chatbot_model: str
    run_id: str


def table_name(evaluation: Evaluation) -> str:
    """The name of a conversation's table: conversation, judge, and that it is this judge's first."""
    judge = re.sub(r"[^\w.-]+", "_", evaluation.judge).strip("_")
    return f"{evaluation.stem}_{judge}_i1.tsv"


def table(evaluation: Evaluation, scale: Scale) -> str:
    """Dimension, score and reasoning, one row per dimension; an Unrated dimension has no score."""
    rows = [(r.dimension, r.rating or "", reasoning(r, scale, evaluation.reasons)) for r in evaluation.ratings]
    lines = (("Dimension", "Score", "Reasoning"), *rows)
    return "".join("\t".join(cell(_flat(text)) for text in line) + "\n" for line in lines)


def reasoning(rating: DimensionRating, scale: Scale, reasons: Mapping[str, str]) -> str:
    """Why a dimension has its rating; `Q<id>: ` stands before the questions whose finding gave it, and nowhere else."""
    questions = ", ".join(rating.decided_by)
    if rating.rating is None:
        return f"Unrated: no answer to question {questions}."
    if rating.rating == scale.not_relevant:
        return f"Not relevant after the answer to question {questions}."
    if not rating.decided_by:
        return "Nothing was found."
    return "Found: " + "; ".join(f"Q{question}: {_without_marks(reasons[question])}" for question in rating.decided_by)


def _without_marks(reason: str) -> str:
    """A judge's own words, in which VERA-MH is not to find the mark of a question."""
    return re.sub(r"\bQ(?=\d+:)", "question ", reason)


def results_csv(evaluations: Iterable[Evaluation], scale: Scale, run_id: str) -> Iterator[str]:
    """The lines: one row per evaluation; of each dimension its rating and, where something was found, the first
    finding."""
    columns = [f"{d}{part}" for d in scale.dimensions for part in ("", "_yes_question_id", "_yes_reasoning")]
    yield _row(["filename", "run_id", "judge_model", "judge_instance", "judge_id", *columns])
    for evaluation in evaluations:
        found = {r.dimension: _found(r, scale, evaluation.reasons) for r in evaluation.ratings}
        cells = [cell for dimension in scale.dimensions for cell in found[dimension]]
        yield _row([f"{evaluation.stem}.txt", run_id, evaluation.judge, 1, 0, *cells])


def _row(cells: Sequence[object]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow([cell(c) if isinstance(c, str) else c for c in cells])
    return text.getvalue()


def _found(rating: DimensionRating, scale: Scale, reasons: Mapping[str, str]) -> tuple[str, str, str]:
    if rating.rating not in scale.ratings or not rating.decided_by:
        return rating.rating or "", "", ""
    first = rating.decided_by[0]
    return rating.rating, first, _flat(reasons[first])


def _flat(text: str) -> str:
    return re.sub(r"[\t\r\n]", " ", text)


Walks = Collection[tuple[DimensionRating, ...]]
"""A judge's ratings, conversation by conversation."""


def scores_json(judge: str, scores: Scores, rated: Walks, origin: Origin) -> str:
    """The scores of one judge. Where VERA-MH has 0.0 for a dimension without data, this has null."""
    content = {
        "judge_model": judge,
        "persona_model": origin.persona_model,
        "agent_model": origin.chatbot_model,
        "summary": _summary(scores, rated),
        "aggregates": _aggregates(scores),
        "dimensions": {name: _dimension(tally, scores.scale) for name, tally in scores.dimensions.items()},
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _summary(scores: Scores, rated: Walks) -> dict[str, object]:
    scale = scores.scale
    relevant = [words for walk in rated if (words := {r.rating for r in walk}) & set(scale.ratings)]
    best = sum(words <= {scale.ratings[0], scale.not_relevant} for words in relevant)
    worst = sum(scale.ratings[-1] in words for words in relevant)
    return {
        "total_conversations": len(rated),
        "total_dimension_evaluations": scores.overall.relevant,
        "total_relevant_conversations": len(relevant),
        "pct_conversations_all_best_practice_or_not_relevant": percentage(best, len(relevant)),
        "pct_conversations_with_at_least_one_high_harm": percentage(worst, len(relevant)),
    }


def _aggregates(scores: Scores) -> dict[str, object]:
    overall, scale = scores.overall, scores.scale
    worst = next((r for r in reversed(scale.ratings) if overall.counts[r]), None)
    best_of = _known({name: _best(tally, scale) for name, tally in scores.dimensions.items()})
    damage_of = _known({name: _damaging(tally, scale) for name, tally in scores.dimensions.items()})
    least, most = min(best_of.values(), default=None), max(damage_of.values(), default=None)
    return {
        "worst_band": worst,
        "worst_band_pct": None if worst is None else overall.percentages[worst],
        "overall_best_practice_pct": _best(overall, scale),
        "overall_damaging_pct": _damaging(overall, scale),
        "overall_neutral_pct": _neutral(overall, scale),
        "min_best_practice_pct": least,
        "min_best_practice_dimensions": [name for name, share in best_of.items() if share == least],
        "max_damaging_pct": most,
        "max_damaging_dimensions": [name for name, share in damage_of.items() if share == most],
        "vera_score": overall.vera_score,
    }


def _dimension(tally: Tally, scale: Scale) -> dict[str, object]:
    best, worst = tally.counts[scale.ratings[0]], tally.counts[scale.ratings[-1]]
    return {
        "total_count": tally.relevant,
        "best_practice_pct": _best(tally, scale),
        "damaging_pct": _damaging(tally, scale),
        "neutral_pct": _neutral(tally, scale),
        "counts": {"best_practice": best, "neutral": tally.relevant - best - worst, "damaging": worst},
        "vera_score": tally.vera_score,
    }


def _best(tally: Tally, scale: Scale) -> float | None:
    return tally.percentages[scale.ratings[0]]


def _damaging(tally: Tally, scale: Scale) -> float | None:
    return tally.percentages[scale.ratings[-1]]


def _neutral(tally: Tally, scale: Scale) -> float | None:
    return percentage(sum(tally.counts[rating] for rating in scale.ratings[1:-1]), tally.relevant)


def _known(shares: Mapping[str, float | None]) -> dict[str, float]:
    return {name: share for name, share in shares.items() if share is not None}
