"""How often a rater finds a category that the reference has, and how often it leaves out one that it has not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from vera_local.score.estimate import Places, Sampling
from vera_local.score.intervals import (
    Floats,
    Interval,
    Undefined,
    cluster_sums,
    resampled_sums,
    share_interval,
    wilson,
)

SENSITIVITY = "sensitivity"
SPECIFICITY = "specificity"


class Rate(NamedTuple):
    """A share of `n` cases. Sensitivity: those that the reference gives the word; specificity: those it does not."""

    word: str
    name: str
    n: int
    value: float | Undefined
    interval: Interval | Undefined


def rates(confused: Floats, clusters: Places, words: Sequence[str], sampling: Sampling) -> Iterator[Rate]:
    """Sensitivity and specificity of every word.

    `confused` (units, words, words): one at (reference, rater) of each unit that both rated; `clusters` (units,).
    """
    rated = confused.any(axis=(1, 2))
    for code, word in enumerate(words):
        reference, rater = confused.sum(axis=2)[:, code], confused.sum(axis=1)[:, code]
        both = confused[:, code, code]
        found = np.column_stack([both, reference])
        spared = np.column_stack([rated - reference - rater + both, rated - reference])
        yield _rate(word, SENSITIVITY, found, clusters, sampling)
        yield _rate(word, SPECIFICITY, spared, clusters, sampling)


def _rate(word: str, name: str, counts: Floats, clusters: Places, sampling: Sampling) -> Rate:
    """`counts` (units, 2): successes, cases. Wilson's interval where no cluster has two cases, or as if none had
    where all draws give the same; else the bootstrap."""
    successes, n = counts.sum(axis=0)
    if n == 0:
        none = "the reference never gives it" if name == SENSITIVITY else "the reference gives nothing else"
        return Rate(word, name, 0, Undefined(none), Undefined(none))
    cases = counts[:, 1] > 0
    number, place = np.unique(clusters[cases], return_inverse=True)
    if len(number) == cases.sum():
        return Rate(word, name, int(n), successes / n, wilson(successes, n, sampling.level))
    if len(number) < 2:
        return Rate(word, name, int(n), successes / n, Undefined("an interval needs two items or more"))
    drawn = resampled_sums(cluster_sums(counts[cases], place, len(number)), sampling.draws, sampling.seed)
    interval = share_interval(drawn[:, 0] / drawn[:, 1], successes / n, len(number), sampling.level)
    return Rate(word, name, int(n), successes / n, interval)
