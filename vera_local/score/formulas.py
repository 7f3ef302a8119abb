"""Percentages and the published score, from counts. Knows no persona, no interval and no word."""

from __future__ import annotations

import numpy as np

from vera_local.score.intervals import Floats
from vera_local.score.scale import Scale


def vera_score(best: float, worst: float) -> float:
    """The published score, 0 to 100, from the percentages (rounded, as published) of the best and the worst rating."""
    return round(max(0.0, (50 + best / 2) * (1 - worst / 100) ** 2), 2)


def vera_scores(best: Floats, worst: Floats) -> Floats:
    """The same formula for many percentages at once, neither they nor the result rounded."""
    values: Floats = (50 + best / 2) * (1 - worst / 100) ** 2
    return values


def percentage(count: float, of: float) -> float | None:
    """A share from 0 to 100, rounded to 2 decimals; None of nothing."""
    return round(100 * count / of, 2) if of else None


def percentages(counts: Floats, of: Floats) -> Floats:
    """Shares from 0 to 100, not rounded; nan of nothing."""
    with np.errstate(invalid="ignore"):
        values: Floats = 100 * counts / of
    return values


def statistics(ratings: Floats, scale: Scale) -> Floats:
    """(..., words) counts -> (..., ratings + 2): the percentage of each rating among the relevant ones, that of Not
    Relevant among all, and the score (nan where the scale has none)."""
    n = len(scale.ratings)
    shares = percentages(ratings[..., :n], ratings[..., :n].sum(axis=-1, keepdims=True))
    not_relevant = percentages(ratings[..., n], ratings.sum(axis=-1))
    best, worst = shares[..., 0], shares[..., -1]
    score = vera_scores(best, worst) if scale.has_vera_score else np.full_like(best, np.nan)
    return np.concatenate([shares, not_relevant[..., None], score[..., None]], axis=-1)
