"""Verdicts of the store as rows for a reader, and how far repeats and judges agree in them. Opens no store."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from vera_local.bundle import Rubric
from vera_local.judge import Verdict
from vera_local.report.verdicts import VerdictRow
from vera_local.run.juries import Bench, Walk
from vera_local.run.soundness import must_be_asked
from vera_local.run.store import Given, Store
from vera_local.score.alike import Share


def row_of(given: Given, rubric: Rubric) -> VerdictRow:
    """A verdict as a row of the files that a run leaves; Foreign where it is not of this rubric."""
    v = given.verdict
    must_be_asked(v.question, v.answer, rubric)
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


def alike_in_repeats(bench: Bench, store: Store) -> dict[str, Share]:
    """Joined judge -> the questions of one conversation that all its repeats asked a model, and answered alike."""
    return {name: Share(*store.alike(seats)) for name, seats in bench.repeats.items()}


def alike_between_judges(bench: Bench) -> dict[tuple[str, str], Share]:
    """Pair of judges, each with its repeats joined -> the dimensions of conversations that both rated, and alike."""
    return {(a, b): _alike(bench.ratings[a], bench.ratings[b]) for a, b in combinations(bench.judges, 2)}


def _alike(one: Mapping[str, Walk], other: Mapping[str, Walk]) -> Share:
    """Conversation by conversation, so that no table of all ratings is made."""
    alike, total = 0, 0
    for id, its in one.items():
        theirs = {r.dimension: r.rating for r in other.get(id, ())}
        both = [(r.rating, theirs.get(r.dimension)) for r in its]
        rated = [pair for pair in both if None not in pair]
        total += len(rated)
        alike += sum(a == b for a, b in rated)
    return Share(alike, total)


def _probability(verdict: Verdict) -> float | None:
    if verdict.confidence is None or verdict.answer is None:
        return None
    return verdict.confidence.options[verdict.answer]
