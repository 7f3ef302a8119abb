"""Majorities, baselines, and shares of a confusion, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import recall_score

from vera_local.score.agreement import MISSING, confusion
from vera_local.score.consensus import constant, leave_one_out_mode, majority, majority_of_others
from vera_local.score.estimate import Sampling
from vera_local.score.intervals import Interval, Undefined, wilson
from vera_local.score.rates import SENSITIVITY, SPECIFICITY, Rate, rates

M = MISSING


@pytest.mark.parametrize(
    ("ratings", "held"),
    [
        ([0, 0, 1], 0), ([0, 1, 2], M), ([0, 1, M], M), ([2, 2, M], 2), ([1, M, M], M), ([M, M, M], M),
        ([0, 0, 1, 1], M), ([0, 0, 1, 2], M), ([0, 0, 0, 1], 0),
    ],
)  # fmt: skip
def test_a_majority_is_more_than_half_of_two_or_more(ratings: list[int], held: int) -> None:
    assert majority(np.array([ratings]), 3).tolist() == [held]


def test_nobody_counts_in_the_majority_that_he_is_held_against() -> None:
    codes = np.array([[0, 0, 1], [1, 1, 1], [0, 1, M]])
    assert majority_of_others(codes, 2).tolist() == [[M, M, 0], [1, 1, 1], [M, M, M]]


def test_the_constant_of_each_stratum() -> None:
    reference = np.array([1, 1, 0, 2, 2, M, M])
    assert constant(reference, np.array([0, 0, 0, 1, 1, 1, 2]), 3).tolist() == [1, 1, 1, 2, 2, 2, M]
    assert constant(np.array([2, 0]), np.zeros(2, int), 3).tolist() == [0, 0]  # the first of equally common ones


def test_the_mode_leaves_its_own_unit_out() -> None:
    reference = np.array([0, 1, 1, 1, 2])
    assert leave_one_out_mode(reference, np.array([0, 0, 0, 1, 1]), 3).tolist() == [1, 0, 0, 2, 1]
    assert leave_one_out_mode(np.array([0, M]), np.array([0, 0]), 2).tolist() == [M, 0]


def test_rates_are_scikit_learns_recalls() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (60, 2))
    found = list(rates(confusion(codes, 3), np.arange(60), ("a", "b", "c"), Sampling()))
    for code, word in enumerate("abc"):
        yes, no = ([r for r in found if (r.word, r.name) == (word, name)] for name in (SENSITIVITY, SPECIFICITY))
        reference, rater = codes[:, 0] == code, codes[:, 1] == code
        assert yes[0].value == pytest.approx(recall_score(reference, rater))
        assert no[0].value == pytest.approx(recall_score(~reference, ~rater))
        assert (yes[0].n, no[0].n) == (reference.sum(), (~reference).sum())
        assert yes[0].interval == wilson(int((reference & rater).sum()), int(reference.sum()))


def test_cases_of_one_item_are_drawn_together() -> None:
    codes = np.repeat(np.array([[0, 0], [0, 1], [1, 1], [1, 1]]), 5, axis=0)
    clustered = list(rates(confusion(codes, 2), np.repeat(np.arange(4), 5), ("no", "yes"), Sampling()))
    assert clustered[0][:4] == ("no", SENSITIVITY, 10, 0.5)
    assert clustered[0].interval == Interval(0, 1, 0.95)


def test_a_rate_that_never_fails_in_items_of_several_cases() -> None:
    codes = np.repeat([[0, 0], [1, 1]], 15, axis=0)
    found = list(rates(confusion(codes, 2), np.arange(30) // 5, ("no", "yes"), Sampling()))
    assert found[0][:4] == ("no", SENSITIVITY, 15, 1.0)
    assert found[0].interval == wilson(3, 3)
    alone = list(rates(confusion(codes, 2), np.zeros(30, np.intp), ("no", "yes"), Sampling()))
    assert alone[0].interval == Undefined("an interval needs two items or more")


def test_a_word_that_the_reference_never_gives_has_no_sensitivity() -> None:
    codes = np.array([[0, 0], [0, 1], [M, 2]])
    found = list(rates(confusion(codes, 3), np.arange(3), ("a", "b", "c"), Sampling()))
    never, nothing = Undefined("the reference never gives it"), Undefined("the reference gives nothing else")
    assert found[1] == Rate("a", SPECIFICITY, 0, nothing, nothing)
    assert found[4] == Rate("c", SENSITIVITY, 0, never, never)
    assert found[5][:4] == ("c", SPECIFICITY, 2, 1.0)
