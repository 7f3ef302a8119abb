"""How sure a number is: Wilson's interval and a bootstrap over clusters. Knows no rating, rater or score.

A statistic that is a function of sums of per-cluster counts is resampled by one matrix product: row d of the weights
says how often draw d took each cluster, so `weights @ counts` are the sums of every draw at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DRAWS: Final = 2000
LEVEL: Final = 0.95
MOST_LEFT_OUT: Final = 0.05
"""A bootstrap interval stands while the statistic is defined in all but this share of the draws."""
_BLOCK = 4_000_000  # weights held at once, as 8-byte numbers
_KEPT = 32_000_000  # weights kept from one statistic of the same clusters to the next, as 2-byte numbers
_SAME = 1e-9  # floating-point dust of equal sums


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high` with confidence `level` (0 to 1).

    `left_out`: draws in which the statistic was undefined, so that they say nothing; 0 where nothing was drawn.
    """

    low: float
    high: float
    level: float = LEVEL
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Undefined:
    """Stands where a number would, with the reason why there is none."""

    reason: str


def wilson(successes: float, n: float, level: float = LEVEL) -> Interval | Undefined:
    """The interval of a single proportion `successes / n` of independent cases (Wilson 1927, without correction).

    Raises ValueError where `successes` is not between 0 and `n`.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return Undefined("there are no cases")
    z, share = NormalDist().inv_cdf((1 + level) / 2), successes / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5
    # At 0 and n the formula gives the bound exactly; rounding must not leave the range.
    return Interval(
        0.0 if successes == 0 else max(0.0, middle - half), 1.0 if successes == n else min(1.0, middle + half), level
    )


def resampled_sums(counts: NDArray[Any], draws: int = DRAWS, seed: int = 0) -> Floats:
    """Sums of `counts` (clusters, ...) over the clusters of each draw, with replacement: (draws, ...).

    The same seed and number of clusters give the same draws.
    """
    flat = np.asarray(counts, dtype=np.float64).reshape(len(counts), -1)
    sums = [weights @ flat for weights in _blocks(len(counts), draws, seed)]
    result: Floats = np.concatenate(sums).reshape(draws, *counts.shape[1:])
    return result


def bootstrap_weights(clusters: int, draws: int = DRAWS, seed: int = 0) -> Floats:
    """How often each draw took each cluster: (draws, clusters) whole numbers; each row sums to `clusters`."""
    return np.concatenate(list(_blocks(clusters, draws, seed)))


def percentile_interval(values: Floats, level: float = LEVEL) -> Interval | Undefined:
    """The middle `level` of the values of all draws (draws,), by linear interpolation; nan: undefined in that draw."""
    defined = values[~np.isnan(values)]
    left_out = len(values) - len(defined)
    if left_out > MOST_LEFT_OUT * len(values):
        return Undefined(f"in {left_out} of {len(values)} draws there is no such number")
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, left_out)


def without_width(interval: Interval | Undefined) -> bool:
    """Whether all draws gave the same number: that is no proof that others of the same kind would."""
    return isinstance(interval, Interval) and interval.high - interval.low < _SAME


def share_interval(drawn: Floats, share: float, clusters: int, level: float = LEVEL) -> Interval | Undefined:
    """The interval of a share (0 to 1) from that of each draw; where these are all the same, Wilson's as if each of
    the `clusters` were one case, which is wide rather than narrow."""
    found = percentile_interval(drawn, level)
    return wilson(min(share, 1.0) * clusters, clusters, level) if without_width(found) else found


def cluster_sums(values: NDArray[Any], clusters: NDArray[np.intp], n_clusters: int) -> Floats:
    """Rows of `values` (rows, ...) added up by cluster: (n_clusters, ...). `clusters` (rows,): 0 to n_clusters - 1."""
    sums = np.zeros((n_clusters, *values.shape[1:]))
    np.add.at(sums, clusters, values)
    return sums


def _blocks(clusters: int, draws: int, seed: int) -> Iterable[Floats]:
    """The weights, some draws at a time: those of many clusters do not fit into memory together."""
    # A cluster is taken as often as there are clusters, at most.
    keep = clusters * draws <= _KEPT and clusters <= np.iinfo(np.uint16).max
    blocks = _kept(clusters, draws, seed) if keep else _drawn(clusters, draws, seed)
    return (block.astype(np.float64) for block in blocks)


@lru_cache(maxsize=3)
def _kept(clusters: int, draws: int, seed: int) -> Sequence[NDArray[np.uint16]]:
    """For many statistics of the same clusters are asked for in a row."""
    return [block.astype(np.uint16) for block in _drawn(clusters, draws, seed)]


def _drawn(clusters: int, draws: int, seed: int) -> Iterator[NDArray[np.int_]]:
    rng, step = np.random.default_rng(seed), max(1, _BLOCK // clusters)
    for first in range(0, draws, step):
        yield _taken(rng, clusters, min(step, draws - first))


def _taken(rng: np.random.Generator, clusters: int, draws: int) -> NDArray[np.int_]:
    taken = rng.integers(clusters, size=(draws, clusters)) + clusters * np.arange(draws)[:, None]
    return np.bincount(taken.ravel(), minlength=draws * clusters).reshape(draws, clusters)
