"""Verdicts of the store as rows for a reader, and how far repeats and judges agree in them. Opens no store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vera_local.judge import Mode, Verdict
from vera_local.report.verdicts import VerdictRow
from vera_local.run.juries import Bench
from vera_local.run.store import Given
from vera_local.score.alike import Share, all_alike, pairwise


def row_of(given: Given) -> VerdictRow:
    """A verdict as a row of the files that a run leaves."""
    v = given.verdict
    return VerdictRow(
        conversation=given.conversation,
        judge=given.judge,
        question=v.question,
        place=given.place,
        state=v.state.value,
        answer=v.answer,
        mode=v.mode.value,
        evidence=v.evidence,
        rationale=v.rationale,
        probability=_probability(v),
        mass=None if v.confidence is None else v.confidence.mass,
        doubt=v.doubt,
        left_out=v.left_out,
        detail=v.detail,
    )


def alike_in_repeats(bench: Bench, rows: Iterable[VerdictRow]) -> dict[str, Share]:
    """Joined judge -> the questions of one conversation that all its repeats asked a model, and answered alike."""
    answers: dict[str, dict[tuple[str, str], str | None]] = {}
    for row in rows:
        if row.mode != Mode.AUTO:
            answers.setdefault(row.judge, {})[row.conversation, row.question] = row.answer
    return {name: all_alike([answers.get(seat, {}) for seat in seats]) for name, seats in bench.repeats.items()}


def alike_between_judges(bench: Bench) -> dict[tuple[str, str], Share]:
    """Pair of judges, each with its repeats joined -> the dimensions of conversations that both rated, and alike."""
    return pairwise({name: _ratings(bench, name) for name in bench.judges})


def _ratings(bench: Bench, name: str) -> Mapping[tuple[str, str], str | None]:
    return {(id, r.dimension): r.rating for id, its in bench.ratings[name].items() for r in its}


def _probability(verdict: Verdict) -> float | None:
    if verdict.confidence is None or verdict.answer is None:
        return None
    return verdict.confidence.options[verdict.answer]
