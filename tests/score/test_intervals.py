"""Intervals: published values, exact draws and what holds for any counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.score import intervals
from vera_local.score.intervals import (
    Floats,
    Interval,
    Undefined,
    bootstrap_weights,
    cluster_sums,
    percentile_interval,
    resampled_sums,
    share_interval,
    wilson,
)


def shares(counts: Floats, seed: int = 0) -> Floats:
    """Of each draw; `counts` (clusters, 2): successes, cases."""
    sums = resampled_sums(counts, seed=seed)
    with np.errstate(invalid="ignore"):
        values: Floats = sums[:, 0] / sums[:, 1]
    return values


def bootstrap(counts: Floats, seed: int = 0) -> Interval | Undefined:
    return percentile_interval(shares(counts, seed))


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    # Newcombe 1998, Statistics in Medicine 17, table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_as_published(successes: int, n: int, low: float, high: float) -> None:
    found = wilson(successes, n)
    assert isinstance(found, Interval)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


@settings(deadline=None)
@given(st.integers(0, 400), st.integers(1, 400))
def test_wilson_holds_the_share_and_mirrors(successes: int, n: int) -> None:
    successes = min(successes, n)
    found, other = wilson(successes, n), wilson(n - successes, n)
    assert isinstance(found, Interval) and isinstance(other, Interval)
    assert 0 <= found.low <= successes / n <= found.high <= 1
    assert (1 - other.high, 1 - other.low) == pytest.approx((found.low, found.high))


def test_wilson_of_nothing() -> None:
    assert wilson(0, 0) == Undefined("there are no cases")
    with pytest.raises(ValueError, match="3 successes of 2"):
        wilson(3, 2)


def test_every_draw_takes_as_many_clusters_as_there_are() -> None:
    weights = bootstrap_weights(7, 500, seed=3)
    assert weights.shape == (500, 7)
    assert (weights.sum(axis=1) == 7).all()
    assert weights.mean() == pytest.approx(1.0)
    assert weights.mean(axis=0) == pytest.approx(np.ones(7), abs=0.2)
    assert not (weights == bootstrap_weights(7, 500, seed=4)).all()


def test_sums_are_those_of_the_weights_in_any_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.arange(24.0).reshape(4, 3, 2)
    expected = np.einsum("dc,cij->dij", bootstrap_weights(4, 90, seed=1), counts)
    assert (resampled_sums(counts, 90, seed=1) == expected).all()
    assert (resampled_sums(counts, 90, seed=1) == expected).all()  # from what was kept
    monkeypatch.setattr(intervals, "_KEPT", 0)
    assert (resampled_sums(counts, 90, seed=1) == expected).all()
    monkeypatch.setattr(intervals, "_BLOCK", 4 * 13)
    assert resampled_sums(counts, 90, seed=1).shape == (90, 3, 2)
    assert (bootstrap_weights(4, 90, seed=1).sum(axis=1) == 4).all()


def test_the_interval_of_a_mean_is_near_its_normal_one() -> None:
    cases = np.column_stack([np.repeat([1, 0], [60, 140]), np.ones(200)])
    found = bootstrap(cases)
    assert isinstance(found, Interval)
    half = 1.96 * (0.3 * 0.7 / 200) ** 0.5
    assert (found.low, found.high) == pytest.approx((0.3 - half, 0.3 + half), abs=0.01)
    assert found == bootstrap(cases)
    assert found != bootstrap(cases, seed=1)


def test_clusters_widen_it() -> None:
    """Ten equal answers of one conversation are one observation."""
    successes = np.repeat([1, 0], [60, 140])
    cases = np.column_stack([successes, np.ones(200)])
    clustered = cluster_sums(cases, np.arange(200) // 10, 20)
    assert clustered.sum(axis=0).tolist() == [60, 200]
    narrow, wide = bootstrap(cases), bootstrap(clustered)
    assert isinstance(narrow, Interval) and isinstance(wide, Interval)
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_what_cannot_be_drawn() -> None:
    rare = np.zeros((10, 2))
    rare[0] = 1  # a third of all draws is without a case
    found = bootstrap(rare)
    assert isinstance(found, Undefined) and "of 2000 draws" in found.reason


def test_a_share_that_is_the_same_in_all_draws_has_wilsons_interval_over_clusters() -> None:
    always = np.full((12, 2), 5.0)
    assert share_interval(shares(always), 1.0, 12) == wilson(12, 12)
    never = always * [0, 1]
    assert share_interval(shares(never), 0.0, 12) == wilson(0, 12)
    mixed = np.column_stack([np.arange(12.0), np.full(12, 12.0)])
    assert share_interval(shares(mixed), 5.5 / 12, 12) == bootstrap(mixed)


def test_a_few_undefined_draws_are_left_out_and_counted() -> None:
    values = np.array([np.nan] * 5 + [1.0] * 95)
    assert percentile_interval(values) == Interval(1.0, 1.0, 0.95, 5)
    assert isinstance(percentile_interval(np.append(values, np.nan)), Undefined)
