"""Each coefficient against scikit-learn, statsmodels or a published example, and what holds for any ratings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from vera_local.score.agreement import (
    AC1,
    AC2_LINEAR,
    AC2_QUADRATIC,
    ALPHA,
    ALPHA_ORDINAL,
    FLEISS,
    KAPPA,
    KAPPA_LINEAR,
    KAPPA_QUADRATIC,
    MISSING,
    PERCENT,
    Codes,
    Statistic,
    confusion,
    tally,
)
from vera_local.score.estimate import Estimate, Sampling, Units, estimate, estimate_mean
from vera_local.score.intervals import Interval, Undefined, bootstrap_weights, percentile_interval, wilson

ALL = (
    PERCENT, KAPPA, KAPPA_LINEAR, KAPPA_QUADRATIC, FLEISS, ALPHA, ALPHA_ORDINAL, AC1, AC2_LINEAR, AC2_QUADRATIC,
)  # fmt: skip
OF_ANY = tuple(s for s in ALL if s not in (KAPPA, KAPPA_LINEAR, KAPPA_QUADRATIC))
FEW = Sampling(draws=20)
quick = settings(deadline=None, max_examples=40)

# Krippendorff 2011, example C: 12 units, 4 observers, missing data. The reliability data of the publication.
KRIPPENDORFF = (
    np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
            [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
        ]
    ).T
    - 1
)

complete = arrays(np.int_, st.tuples(st.integers(2, 30), st.just(2)), elements=st.integers(0, 3))
patchy = arrays(np.int_, st.tuples(st.integers(2, 20), st.integers(2, 5)), elements=st.integers(MISSING, 3))


def value(statistic: Statistic, codes: Codes, categories: int) -> float:
    found = estimate(statistic, Units.alone(codes), categories, sampling=FEW).value
    assert isinstance(found, float), found
    return found


def of_table(*rows: list[int]) -> Codes:
    """Two raters whose confusion matrix has these rows."""
    cells = [(i, j) for i, row in enumerate(rows) for j, n in enumerate(row) for _ in range(n)]
    return np.array(cells)


def test_krippendorffs_example() -> None:
    assert value(ALPHA, KRIPPENDORFF, 5) == pytest.approx(0.743, abs=5e-4)
    assert value(ALPHA_ORDINAL, KRIPPENDORFF, 5) == pytest.approx(0.815, abs=5e-4)


def test_gwets_two_by_two() -> None:
    """Gwet 2002: 125 cases, 118 of them rated alike: kappa is negative, AC1 near the agreement."""
    codes = of_table([118, 5], [2, 0])
    assert value(PERCENT, codes, 2) == pytest.approx(0.944)
    assert value(KAPPA, codes, 2) == pytest.approx(-0.0234, abs=5e-5)
    assert value(AC1, codes, 2) == pytest.approx(0.9408, abs=5e-5)


@pytest.mark.parametrize(
    ("statistic", "expected"), [(AC1, 0.7754441), (AC2_LINEAR, 0.8587391), (AC2_QUADRATIC, 0.9140007)]
)
def test_gwet_with_missing_ratings_as_recorded_from_irrcac(statistic: Statistic, expected: float) -> None:
    """As irrCAC 0.4.4 gives on Krippendorff's data (its dataset raw_4raters)."""
    assert value(statistic, KRIPPENDORFF, 5) == pytest.approx(expected, abs=5e-8)


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        (KAPPA, 0.7964094), (KAPPA_LINEAR, 0.842902), (KAPPA_QUADRATIC, 0.8921569),
        (AC1, 0.8493305), (AC2_LINEAR, 0.9000227), (AC2_QUADRATIC, 0.9402369),
    ],
)  # fmt: skip
def test_two_abstractors_as_recorded_from_irrcac(statistic: Statistic, expected: float) -> None:
    """As irrCAC 0.4.4 gives on its 3 x 3 table of two abstractors (Gwet 2014)."""
    assert value(statistic, of_table([13, 0, 0], [0, 20, 7], [0, 4, 56]), 3) == pytest.approx(expected, abs=5e-8)


@pytest.mark.parametrize(("table", "kappa", "ac1"), [(([2, 3], [3, 92]), 0.37, 0.93), (([0, 3], [2, 95]), -0.03, 0.95)])
def test_rare_categories_pull_kappa_and_leave_ac1(table: tuple[list[int], list[int]], kappa: float, ac1: float) -> None:
    codes = of_table(*table)
    assert (value(KAPPA, codes, 2), value(AC1, codes, 2)) == pytest.approx((kappa, ac1), abs=0.006)


def test_fleiss_example() -> None:
    """Fleiss 1971 as it is commonly reprinted: 10 subjects, 14 raters, 5 categories, kappa 0.210."""
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    codes = np.array([np.repeat(np.arange(5), row) for row in counts])
    assert value(FLEISS, codes, 5) == pytest.approx(0.210, abs=5e-4)


@quick
@given(complete)
@pytest.mark.parametrize(
    ("statistic", "weights"), [(KAPPA, None), (KAPPA_LINEAR, "linear"), (KAPPA_QUADRATIC, "quadratic")]
)
def test_kappa_is_scikit_learns(statistic: Statistic, weights: str | None, codes: Codes) -> None:
    found = estimate(statistic, Units.alone(codes), 4, sampling=FEW).value
    if len(np.unique(codes)) < 2:
        assert found == Undefined("only one category was used")
    else:
        expected = cohen_kappa_score(codes[:, 0], codes[:, 1], labels=[0, 1, 2, 3], weights=weights)
        assert found == pytest.approx(expected, abs=1e-12)


@quick
@given(arrays(np.int_, st.tuples(st.integers(2, 20), st.integers(2, 5)), elements=st.integers(0, 3)))
def test_fleiss_kappa_is_statsmodels(codes: Codes) -> None:
    found = estimate(FLEISS, Units.alone(codes), 4, sampling=FEW).value
    if len(np.unique(codes)) < 2:
        assert found == Undefined("only one category was used")
    else:
        assert found == pytest.approx(fleiss_kappa(aggregate_raters(codes, 4)[0]), abs=1e-12)


@quick
@given(complete)
def test_for_two_raters_alpha_is_scotts_pi_with_a_small_sample_correction(codes: Codes) -> None:
    if len(np.unique(codes)) < 2:
        return
    n = codes.size
    assert 1 - value(ALPHA, codes, 4) == pytest.approx((1 - value(FLEISS, codes, 4)) * (n - 1) / n)


@quick
@given(patchy, st.integers(0, 99))
@pytest.mark.parametrize("statistic", OF_ANY, ids=lambda s: s.name)
def test_raters_and_items_in_any_order(statistic: Statistic, codes: Codes, seed: int) -> None:
    rng = np.random.default_rng(seed)
    other = rng.permutation(rng.permutation(codes, axis=0), axis=1)
    assert same(point(statistic, codes), point(statistic, other))


@quick
@given(patchy)
@pytest.mark.parametrize("statistic", [s for s in OF_ANY if not s.ordered], ids=lambda s: s.name)
def test_nominal_categories_may_have_any_names(statistic: Statistic, codes: Codes) -> None:
    renamed = np.where(codes == MISSING, MISSING, np.array([2, 0, 3, 1])[codes])
    assert same(point(statistic, codes), point(statistic, renamed))


@quick
@given(patchy)
@pytest.mark.parametrize("statistic", [s for s in OF_ANY if s.ordered], ids=lambda s: s.name)
def test_a_scale_may_be_read_from_either_end(statistic: Statistic, codes: Codes) -> None:
    assert same(point(statistic, codes), point(statistic, np.where(codes == MISSING, MISSING, 3 - codes)))


@quick
@given(arrays(np.int_, st.integers(2, 20), elements=st.integers(0, 3)), st.integers(2, 5))
@pytest.mark.parametrize("statistic", ALL, ids=lambda s: s.name)
def test_perfect_agreement_is_one(statistic: Statistic, truth: Codes, raters: int) -> None:
    codes = np.repeat(truth[:, None], raters if statistic in OF_ANY else 2, axis=1)
    found = point(statistic, codes).value
    if len(np.unique(truth)) < 2 and statistic is not PERCENT:
        assert found == Undefined("only one category was used")
    else:
        assert found == pytest.approx(1)


@quick
@given(patchy)
@pytest.mark.parametrize("statistic", OF_ANY, ids=lambda s: s.name)
def test_never_nan_and_never_above_one(statistic: Statistic, codes: Codes) -> None:
    found = estimate(statistic, Units.alone(codes), 4, sampling=FEW)
    if isinstance(found.value, float):
        assert found.value <= 1 + 1e-12
    if isinstance(found.interval, Interval):
        assert found.interval.low <= found.interval.high <= 1 + 1e-12


@quick
@given(patchy)
def test_raters_that_rate_nothing_and_items_that_nobody_rates_change_nothing(codes: Codes) -> None:
    silent = np.pad(codes, ((0, 3), (0, 1)), constant_values=MISSING)
    for statistic in OF_ANY:
        assert same(point(statistic, codes), point(statistic, silent))


@quick
@given(complete)
def test_one_stratum_is_no_stratum_and_two_equal_ones_are_one(codes: Codes) -> None:
    twice = Units(np.vstack([codes, codes]), np.repeat([0, 1], len(codes)), np.arange(2 * len(codes)))
    for statistic in (KAPPA, FLEISS, AC1):
        once = point(statistic, codes)
        within = estimate(statistic, twice, 4, within=True, sampling=FEW)
        assert within.n == 2 * once.n
        if once.n > 1 and isinstance(once.value, float):
            assert within.value == pytest.approx(once.value)


def test_knowing_the_stratum_alone_is_no_agreement_within_it() -> None:
    """Two raters who always say 0 of the one and 1 of the other stratum, but for chance."""
    stratum = np.repeat([0, 1], 50)
    first, second = stratum.copy(), stratum.copy()
    first[[0, 1, 60, 61]] ^= 1
    second[[10, 11, 70, 71]] ^= 1
    units = Units(np.column_stack([first, second]), stratum, np.arange(100))
    pooled, within = (estimate(KAPPA, units, 2, within=within).value for within in (False, True))
    assert isinstance(pooled, float) and isinstance(within, float)
    assert pooled > 0.8
    assert within < 0


@pytest.mark.parametrize("statistic", ALL, ids=lambda s: s.name)
@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([[0, MISSING], [MISSING, 1]], "no item was rated by two raters"),
        ([[0, 1], [MISSING, 1]], "only one item was rated by two raters"),
        ([[1, 1], [1, 1], [1, 1]], "only one category was used"),
    ],
)
def test_degenerate_ratings_are_undefined(statistic: Statistic, rows: list[list[int]], reason: str) -> None:
    found = point(statistic, np.array(rows))
    if statistic is PERCENT and "category" in reason:
        assert found.value == 1
    elif statistic is FLEISS and rows[-1] == [MISSING, 1] and rows[0] == [0, 1]:
        assert found.value == Undefined("items have from 1 to 2 ratings each")
    else:
        assert found.value == found.interval == Undefined(reason)


@quick
@given(arrays(np.int_, st.tuples(st.integers(4, 12), st.integers(2, 4)), elements=st.integers(MISSING, 3)))
def test_ordinal_alpha_within_strata_pair_by_pair(codes: Codes) -> None:
    """Disagreement of every pair of ratings, with distances by ranks among the paired ratings of all strata."""
    stratum = np.arange(len(codes)) % 2
    units = [[int(c) for c in row if c != MISSING] for row in codes]
    paired = [(place, unit) for place, unit in zip(stratum, units, strict=True) if len(unit) > 1]
    counts = np.bincount([c for _, unit in paired for c in unit], minlength=4)

    def apart(c: int, k: int) -> float:
        low, high = sorted((c, k))
        return float(counts[low : high + 1].sum() - (counts[low] + counts[high]) / 2) ** 2

    def pairs(ratings: list[int]) -> float:
        return sum(apart(x, y) for i, x in enumerate(ratings) for j, y in enumerate(ratings) if i != j)

    observed = sum(pairs(unit) / (len(unit) - 1) for _, unit in paired)
    chance = 0.0
    for place in (0, 1):
        its = [c for p, unit in paired if p == place for c in unit]
        chance += pairs(its) / (len(its) - 1) if its else 0
    found = estimate(ALPHA_ORDINAL, Units(codes, stratum, np.arange(len(codes))), 4, within=True, sampling=FEW).value
    if isinstance(found, float):
        assert found == pytest.approx(1 - observed / chance)
    else:
        assert len(paired) < 2 or chance == 0 or len(np.flatnonzero(counts)) < 2


def test_one_category_in_each_stratum_leaves_nothing_to_agree_on_within() -> None:
    codes = np.repeat([[0, 0], [1, 1]], 5, axis=0)
    units = Units(codes, np.repeat([0, 1], 5), np.arange(10))
    assert estimate(KAPPA, units, 2).value == 1
    within = estimate(KAPPA, units, 2, within=True)
    assert within.value == within.interval == Undefined("only one category was used in each dimension")


def test_fleiss_wants_as_many_ratings_of_every_item() -> None:
    found = point(FLEISS, KRIPPENDORFF)
    assert found.value == Undefined("items have from 1 to 4 ratings each")


def test_an_item_is_drawn_as_a_whole() -> None:
    rng = np.random.default_rng(3)
    truth = np.repeat(rng.integers(0, 2, 30), 6)
    codes = np.column_stack([truth, np.where(np.repeat(rng.random(30) < 0.3, 6), 1 - truth, truth)])
    alone = estimate(KAPPA, Units.alone(codes), 2)
    items = estimate(KAPPA, Units(codes, np.zeros(180, np.intp), np.repeat(np.arange(30), 6)), 2)
    assert alone.value == items.value
    assert isinstance(alone.interval, Interval) and isinstance(items.interval, Interval)
    assert items.interval.high - items.interval.low > 2 * (alone.interval.high - alone.interval.low)
    single = estimate(KAPPA, Units(codes, np.zeros(180, np.intp), np.zeros(180, np.intp)), 2)
    assert single.interval == Undefined("an interval needs two items or more")


def test_the_bootstrap_is_the_coefficient_of_drawn_items() -> None:
    """The matrix product against drawing the rows themselves, with the same weights."""
    codes = np.random.default_rng(5).integers(0, 3, (25, 3))
    weights = bootstrap_weights(25, 200, 7).astype(int)
    for statistic in OF_ANY:
        slow = [value(statistic, np.repeat(codes, row, axis=0), 3) for row in weights]
        fast = estimate(statistic, Units.alone(codes), 3, sampling=Sampling(200, 7))
        expected = percentile_interval(np.array(slow))
        assert isinstance(fast.interval, Interval) and isinstance(expected, Interval)
        assert (fast.interval.low, fast.interval.high) == pytest.approx((expected.low, expected.high))


def test_perfect_agreement_is_no_proof_of_perfect_agreement_elsewhere() -> None:
    """All draws agree: the share of items has Wilson's interval, and a coefficient none."""
    codes = np.repeat([[0, 0], [1, 1]], 10, axis=0)
    assert estimate(PERCENT, Units.alone(codes), 2).interval == wilson(20, 20)
    for statistic in (KAPPA, ALPHA):
        found = estimate(statistic, Units.alone(codes), 2)
        assert (found.value, found.interval) == (1.0, Undefined("all draws give the same number"))


def test_the_mean_of_several_raters() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 80)
    pairs = [Units.alone(np.column_stack([truth, np.where(rng.random(80) < p, 1 - truth, truth)])) for p in (0.1, 0.3)]
    single = [estimate(KAPPA, units, 2) for units in pairs]
    mean = estimate_mean(KAPPA, pairs, 2)
    values = [s.value for s in single if isinstance(s.value, float)]
    assert mean.value == pytest.approx(sum(values) / 2)
    assert isinstance(mean.interval, Interval)
    assert mean.interval.low < np.mean(values) < mean.interval.high
    constant = Units.alone(np.zeros((80, 2), int))
    assert estimate_mean(KAPPA, [pairs[0], constant], 2).value == Undefined("only one category was used")


def test_confusion_is_of_two_and_codes_are_checked() -> None:
    assert confusion(np.array([[0, 1], [2, 2], [MISSING, 1]]), 3).sum(axis=0).tolist() == [
        [0, 1, 0],
        [0, 0, 0],
        [0, 0, 1],
    ]
    with pytest.raises(ValueError, match="two raters, not 3"):
        confusion(np.zeros((2, 3), int), 2)
    with pytest.raises(ValueError, match="codes must be -1 or 0 to 1"):
        tally(np.array([[2]]), 2)


def point(statistic: Statistic, codes: Codes) -> Estimate:
    return estimate(statistic, Units.alone(codes), 4 if codes.max(initial=0) < 4 else 5, sampling=FEW)


def same(one: Estimate, two: Estimate) -> bool:
    if isinstance(one.value, Undefined) or isinstance(two.value, Undefined):
        return one == two
    return one.n == two.n and one.value == pytest.approx(two.value, abs=1e-12)
