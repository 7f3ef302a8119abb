"""Coefficients of agreement from ratings, with how sure they are. Knows no formula of one, no rater and no file.

The two sums of a `Statistic` give the pooled value, with chance as a whole or taken within strata (the dimensions):
1 - sum of n D_o / sum of n D_e; and a bootstrap over clusters by one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vera_local.score.agreement import PERCENT, Codes, Statistic
from vera_local.score.intervals import (
    DRAWS,
    LEVEL,
    Floats,
    Interval,
    Undefined,
    cluster_sums,
    percentile_interval,
    resampled_sums,
    share_interval,
    without_width,
)

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the bootstrap draws: how often, from which seed, for which level of confidence (0 to 1)."""

    draws: int = DRAWS
    seed: int = 0
    level: float = LEVEL


@dataclass(frozen=True, eq=False)
class Units:
    """Ratings by unit. `codes` (units, raters); `stratum` and `cluster` (units,), numbered from 0.

    Chance may be taken within each stratum (a dimension); a cluster (an item) is drawn as a whole.
    """

    codes: Codes
    stratum: Places
    cluster: Places

    @classmethod
    def alone(cls, codes: Codes) -> Units:
        """One stratum, and each unit drawn by itself."""
        return cls(codes, np.zeros(len(codes), np.intp), np.arange(len(codes)))

    def rated(self, codes: Codes) -> Units:
        """The same units with other ratings."""
        return replace(self, codes=codes)

    def where(self, chosen: NDArray[np.bool_]) -> Units:
        """The units that `chosen` (units,) says."""
        return Units(self.codes[chosen], self.stratum[chosen], self.cluster[chosen])


@dataclass(frozen=True, slots=True)
class Estimate:
    """A coefficient: `n` units say something to it; 1 is perfect agreement, 0 (but for percent) what chance gives."""

    n: int
    value: float | Undefined
    interval: Interval | Undefined


def estimate(
    statistic: Statistic, units: Units, categories: int, *, within: bool = False, sampling: Sampling | None = None
) -> Estimate:
    """The coefficient of all units together with its bootstrap interval; `within`: chance is taken within strata."""
    return estimate_mean(statistic, [units], categories, within=within, sampling=sampling)


def estimate_mean(
    statistic: Statistic,
    comparisons: Sequence[Units],
    categories: int,
    *,
    within: bool = False,
    sampling: Sampling | None = None,
) -> Estimate:
    """The mean of the coefficients of several ratings of the same units; undefined where one of them is.

    The comparisons differ in `codes` alone. `n` is the least of theirs.
    """
    added = [statistic.per_unit(units.codes, categories) for units in comparisons]
    n = min(_meetings(its) for its in added)
    reasons = [statistic.unfit(u.codes) or _unable(statistic, its) for u, its in zip(comparisons, added, strict=True)]
    if reason := next(filter(None, reasons), None):
        return Estimate(n, Undefined(reason), Undefined(reason))
    stratum = comparisons[0].stratum if within else np.zeros_like(comparisons[0].stratum)
    sums = _sums(np.stack(added, axis=1), comparisons[0].cluster, stratum)
    value = float(_coefficients(statistic, sums.sum(axis=0)).mean())
    if np.isnan(value):
        return Estimate(n, *[Undefined("only one category was used in each dimension")] * 2)
    return Estimate(n, value, _interval(statistic, value, sums, sampling or Sampling()))


def _interval(statistic: Statistic, value: float, sums: Floats, sampling: Sampling) -> Interval | Undefined:
    """Of percent agreement there is one too where all draws agree: a share of items, each of which counts once."""
    if len(sums) < 2:
        return Undefined("an interval needs two items or more")
    drawn = _coefficients(statistic, resampled_sums(sums, sampling.draws, sampling.seed)).mean(axis=-1)
    if statistic is PERCENT:
        return share_interval(drawn, value, len(sums), sampling.level)
    found = percentile_interval(drawn, sampling.level)
    return Undefined("all draws give the same number") if without_width(found) else found


def _sums(added: Floats, cluster: Places, stratum: Places) -> Floats:
    """What units (units, comparisons, ...) add, by cluster: (clusters, comparisons, strata, ...).

    Clusters that say nothing are left out, lest draws are spent on them.
    """
    telling = added.any(axis=tuple(range(1, added.ndim)))
    clusters, place = np.unique(cluster[telling], return_inverse=True)
    strata = int(stratum.max()) + 1
    sums = cluster_sums(added[telling], place * strata + stratum[telling], len(clusters) * strata)
    shaped: Floats = sums.reshape(len(clusters), strata, *added.shape[1:]).swapaxes(1, 2)
    return shaped


def _coefficients(statistic: Statistic, sums: Floats) -> Floats:
    """1 - D_o / D_e over the strata: sums (..., strata, categories, k) -> (...); nan where D_e is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        observed, expected = (np.nansum(part, axis=-1) for part in statistic.disagreements(sums))
        value: Floats = np.where(expected > 0, 1 - observed / np.where(expected > 0, expected, 1), np.nan)
    return value


def _pairs(added: Floats) -> Floats:
    """Without the ratings that `shares` puts beside the pairs."""
    return added[..., : added.shape[-2]]


def _meetings(added: Floats) -> int:
    """Units in which two ratings meet, or more."""
    return int(_pairs(added).any(axis=(1, 2)).sum())


def _unable(statistic: Statistic, added: Floats) -> str | None:
    pairs, n = _pairs(added), _meetings(added)
    if n < 2:
        return "only one item was rated by two raters" if n else "no item was rated by two raters"
    used = pairs.any(axis=(0, 2)) | pairs.any(axis=(0, 1))
    if used.sum() < 2 and statistic is not PERCENT:
        return "only one category was used"
    return None
