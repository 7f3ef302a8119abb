"""Agreement among raters as numbers. Knows no file, no rater's name and no rating's word.

Ratings are `codes` (units, raters): whole numbers from 0 to `categories - 1`, in the order of the scale where it has
one, and MISSING. A unit is one item in one dimension. Every coefficient here has the same form,

    1 - observed disagreement / disagreement expected by chance,

so a `Statistic` is two functions: what a unit adds to a sum, and the two disagreements from the sums. Each disagreement
is kept times the number n of what stands behind it. `estimate` makes values and intervals of them.

Cohen 1960 and 1968: kappa, weighted kappa. Fleiss 1971: kappa of many raters. Krippendorff 2011, "Computing
Krippendorff's alpha-reliability". Gwet 2008: AC1; Gwet 2014, "Handbook of inter-rater reliability", 4th ed.: AC2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vera_local.score.intervals import Floats

Codes = NDArray[np.int_]
Disagreements = tuple[Floats, Floats]
"""Observed and expected by chance, each times n: (..., strata)."""

MISSING: Final = -1


@dataclass(frozen=True, slots=True)
class Statistic:
    """One coefficient of agreement.

    `per_unit`: codes, categories -> what each unit adds, (units, categories, k), zero where it says nothing.
    `disagreements`: sums of that, (..., strata, categories, k) -> Disagreements, nan where there are none.
    `unfit`: codes -> why they cannot be judged by this coefficient, or None.
    """

    name: str
    per_unit: Callable[[Codes, int], Floats]
    disagreements: Callable[[Floats], Disagreements]
    ordered: bool = False
    unfit: Callable[[Codes], str | None] = lambda codes: None


# What a unit adds.


def tally(codes: Codes, categories: int) -> Floats:
    """How many raters chose each category: (units, categories)."""
    if codes.size and not MISSING <= codes.min() <= codes.max() < categories:
        raise ValueError(f"codes must be {MISSING} or 0 to {categories - 1}")
    chosen: NDArray[np.bool_] = codes[:, :, None] == np.arange(categories)
    counts: Floats = chosen.sum(axis=1).astype(np.float64)
    return counts


def confusion(codes: Codes, categories: int) -> Floats:
    """One at (first rater's category, second rater's) of each unit that both rated: (units, categories, categories)."""
    if codes.shape[1] != 2:
        raise ValueError(f"this compares two raters, not {codes.shape[1]}")
    first, second = (tally(codes[:, [rater]], categories) for rater in (0, 1))
    both: Floats = first[:, :, None] * second[:, None, :]
    return both


def _ordered_pairs(counts: Floats) -> Floats:
    """How many ordered pairs of raters chose (c, k): n_c n_k, n_c (n_c - 1) for the same category."""
    pairs: Floats = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1])
    return pairs


def coincidences(codes: Codes, categories: int) -> Floats:
    """Krippendorff's coincidences: a unit of m >= 2 ratings adds its ordered pairs over m - 1."""
    counts = tally(codes, categories)
    added: Floats = _ordered_pairs(counts) / np.maximum(counts.sum(axis=1) - 1, 1)[:, None, None]
    return added


def shares(codes: Codes, categories: int) -> Floats:
    """Pairs and ratings of a unit of m ratings, as shares: its ordered pairs over m (m - 1), beside them n_k / m.

    (units, categories, categories + 1); the last column holds the ratings.
    """
    counts = tally(codes, categories)
    m = np.maximum(counts.sum(axis=1), 1)[:, None]
    pairs = _ordered_pairs(counts) / np.maximum(m * (m - 1), 1)[:, :, None]
    return np.concatenate([pairs, (counts / m)[:, :, None]], axis=2)


# How far two categories are apart: 0 for the same one.


def nominal(categories: int) -> Floats:
    """1 for any two that differ."""
    return 1 - np.eye(categories)


def linear(categories: int) -> Floats:
    """Steps between them, 1 from end to end."""
    steps: Floats = np.abs(np.subtract.outer(np.arange(categories), np.arange(categories))) / max(categories - 1, 1)
    return steps


def quadratic(categories: int) -> Floats:
    """The square of `linear`."""
    return linear(categories) ** 2


Distance = Callable[[int], Floats]


# Disagreements from the sums.


def _all(matrix: Floats) -> Floats:
    total: Floats = matrix.sum(axis=(-1, -2))
    return total


def _kappa(distance: Distance, sums: Floats) -> Disagreements:
    """Cohen: n D_o = sum w_ij o_ij, n D_e = sum w_ij o_i. o_.j / n."""
    weights = distance(sums.shape[-1])
    rows, columns = sums.sum(axis=-1), sums.sum(axis=-2)
    return _all(weights * sums), _all(weights * rows[..., :, None] * columns[..., None, :]) / _all(sums)


def _alpha(sums: Floats, squared: Floats) -> Disagreements:
    """Krippendorff: n D_o = sum o_ck d2_ck, n D_e = sum n_c n_k d2_ck / (n - 1), n_c the row sums of o."""
    marginals = sums.sum(axis=-1)
    chance = _all(squared * marginals[..., :, None] * marginals[..., None, :])
    return _all(sums * squared), chance / (marginals.sum(axis=-1) - 1)


def _alpha_nominal(sums: Floats) -> Disagreements:
    return _alpha(sums, nominal(sums.shape[-1]))


def _alpha_ordinal(sums: Floats) -> Disagreements:
    """d_ck is how many ratings of all strata lie from c to k, those at the ends counted by half."""
    marginals = sums.sum(axis=(-1, -3))
    middles = np.cumsum(marginals, axis=-1) - marginals / 2
    return _alpha(sums, ((middles[..., :, None] - middles[..., None, :]) ** 2)[..., None, :, :])


def _meeting(distance: Distance, sums: Floats) -> tuple[Floats, Floats, Floats]:
    """From sums of `shares`: n D_o, the number n of units with a pair, and the mean share of each category."""
    pairs, ratings = sums[..., :-1], sums[..., -1]
    return _all(distance(sums.shape[-2]) * pairs), _all(pairs), ratings / ratings.sum(axis=-1, keepdims=True)


def _percent(sums: Floats) -> Disagreements:
    """Share of pairs of raters within a unit that agree: D_e is 1."""
    observed, n, _ = _meeting(nominal, sums)
    return observed, n


def _fleiss(sums: Floats) -> Disagreements:
    """Fleiss: D_e = 1 - sum p_k ** 2."""
    observed, n, p = _meeting(nominal, sums)
    return observed, n * (1 - (p**2).sum(axis=-1))


def _gwet(distance: Distance, sums: Floats) -> Disagreements:
    """Gwet: D_e = 1 - T / (q (q - 1)) sum p_k (1 - p_k), T the sum of the agreement weights (q for AC1)."""
    observed, n, p = _meeting(distance, sums)
    q = p.shape[-1]
    total = (1 - distance(q)).sum()
    return observed, n * (1 - total / (q * max(q - 1, 1)) * (p * (1 - p)).sum(axis=-1))


def _uneven(codes: Codes) -> str | None:
    raters = (codes != MISSING).sum(axis=1)
    few, many = raters[raters > 0].min(initial=len(codes[0])), raters.max(initial=0)
    return f"items have from {few} to {many} ratings each" if few < many else None


PERCENT: Final = Statistic("agreement", shares, _percent)
KAPPA: Final = Statistic("kappa", confusion, partial(_kappa, nominal))
KAPPA_LINEAR: Final = Statistic("kappa, linear", confusion, partial(_kappa, linear), ordered=True)
KAPPA_QUADRATIC: Final = Statistic("kappa, quadratic", confusion, partial(_kappa, quadratic), ordered=True)
FLEISS: Final = Statistic("Fleiss' kappa", shares, _fleiss, unfit=_uneven)
ALPHA: Final = Statistic("alpha, nominal", coincidences, _alpha_nominal)
ALPHA_ORDINAL: Final = Statistic("alpha, ordinal", coincidences, _alpha_ordinal, ordered=True)
AC1: Final = Statistic("AC1", shares, partial(_gwet, nominal))
AC2_LINEAR: Final = Statistic("AC2, linear", shares, partial(_gwet, linear), ordered=True)
AC2_QUADRATIC: Final = Statistic("AC2, quadratic", shares, partial(_gwet, quadratic), ordered=True)
