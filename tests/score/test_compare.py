"""Sides against the first: paired where personas match, in plain words, and never surer than the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.score import Rating, Scale, ratings_frame
from vera_local.score.compare import Apart, Comparison, Difference, compare
from vera_local.score.intervals import bootstrap_weights

SCALE = Scale(("good", "fair", "bad"), "n/a", ("Warmth", "Care"), ("g",))


def frame(words: Mapping[int, Sequence[str | None]], prefix: str = "P") -> pl.DataFrame:
    """Persona -> the rating of each of its conversations in Care; Warmth is always good."""
    return ratings_frame(
        Rating(f"{prefix}{p}-{k}", f"{prefix}{p}" if prefix else "", "g", k, "j", dimension, rating)
        for p, its in words.items()
        for k, word in enumerate(its)
        for dimension, rating in (("Warmth", "good"), ("Care", word))
    )


def difference(
    compared: Comparison, statistic: str, dimension: str | None = "Care", rating: str | None = None
) -> Difference:
    (found,) = [
        d for d in compared.differences if (d.statistic, d.dimension, d.rating) == (statistic, dimension, rating)
    ]
    return found


def test_paired_sides_are_drawn_together() -> None:
    """Against the difference written out on the same draws."""
    one = {p: ["bad", "good"] if p % 3 else ["fair", "bad"] for p in range(15)}
    two = {p: ["good", "good"] if p % 3 else ["fair", "bad"] for p in range(15)}
    compared = compare({"A": frame(one), "B": frame(two)}, SCALE)
    assert compared.paired == {"B": True}
    order = sorted(one, key=lambda p: f"P{p}")
    apart = np.array([two[p].count("bad") - one[p].count("bad") for p in order])
    low, high = np.quantile(100 * (bootstrap_weights(15) @ apart) / 30, [0.025, 0.975])
    found = difference(compared, "percentage", rating="bad")
    assert found.value == -33.33
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high), abs=0.006)
    assert found.interval.how == "paired bootstrap"
    assert found.apart is Apart.LOWER
    assert difference(compared, "vera_score").apart is Apart.HIGHER


def test_pairing_sees_what_independent_draws_do_not() -> None:
    """Most personas are alike on both sides; the few that changed all changed in one direction."""
    one = {p: ["bad"] * 2 if p < 20 else ["good"] * 2 for p in range(40)}
    two = {p: ["bad"] * 2 if 6 <= p < 20 else ["good"] * 2 for p in range(40)}
    paired = compare({"A": frame(one), "B": frame(two)}, SCALE)
    other = compare({"A": frame(one), "B": frame(two, "Q")}, SCALE)
    assert other.paired == {"B": False}
    assert difference(paired, "percentage", rating="bad").apart is Apart.LOWER
    apart = difference(other, "percentage", rating="bad")
    assert (apart.interval.how, apart.apart) == ("unpaired bootstrap", Apart.NOT)


def test_conversations_without_a_named_persona_are_never_paired() -> None:
    words = {p: ["bad" if p % 2 else "good"] for p in range(12)}
    assert compare({"A": frame(words, ""), "B": frame(words, "")}, SCALE).paired == {"B": False}


def test_the_same_conversations_are_paired_without_a_named_persona() -> None:
    """As the judges of one run rate them: with and without names the same differences come out."""
    one = {p: ["bad"] if p < 20 else ["good"] for p in range(40)}
    two = {p: ["bad"] if 6 <= p < 20 else ["good"] for p in range(40)}
    named = compare({"A": frame(one), "B": frame(two)}, SCALE)
    bare = {"A": frame(one, "").with_columns(pl.lit("").alias("persona")), "B": frame(two, "")}
    assert compare(bare, SCALE, same_conversations=True).differences == named.differences


def test_personas_of_one_side_alone_do_not_part_the_others() -> None:
    """Against the ratio of each draw's sums, written out; P15 is missing in B, Q0 in A."""
    one = {p: ["bad", "good"] if p % 3 else ["fair", "bad"] for p in range(16)}
    two = {p: ["good", "good"] if p % 3 else ["fair", "bad"] for p in range(15)}
    sides = {"A": frame(one), "B": pl.concat([frame(two), frame({0: ["bad"]}, "Q")])}
    compared = compare(sides, SCALE)
    assert (compared.paired, compared.shared) == ({"B": True}, {"B": 15})
    order = sorted(one, key=lambda p: f"P{p}")
    bad = [[one[p].count("bad") for p in order] + [0], [two.get(p, []).count("bad") for p in order] + [1]]
    all_ = [[2] * 16 + [0], [len(two.get(p, [])) for p in order] + [1]]
    shares = [(bootstrap_weights(17) @ b) / (bootstrap_weights(17) @ n) for b, n in zip(bad, all_, strict=True)]
    found = difference(compared, "percentage", rating="bad")
    expected = np.quantile(100 * (shares[1] - shares[0]), [0.025, 0.975])
    assert (found.interval.low, found.interval.high) == pytest.approx(tuple(expected), abs=0.006)
    assert (found.interval.how, found.apart) == ("paired bootstrap", Apart.LOWER)


@settings(deadline=None, max_examples=20)
@given(st.dictionaries(st.integers(0, 20), st.lists(st.sampled_from(["good", "fair", "bad", "n/a", None]), min_size=1)))
def test_a_side_cannot_be_told_from_itself(words: dict[int, list[str | None]]) -> None:
    compared = compare({"A": frame(words), "B": frame(words)}, SCALE)
    assert {d.value for d in compared.differences} <= {0.0, None}
    assert {d.apart for d in compared.differences} <= {Apart.NOT, Apart.UNDEFINED}


def test_sides_that_are_all_one_word_are_told_apart_by_both_intervals() -> None:
    one, two = ({p: [word] * 3 for p in range(20)} for word in ("bad", "good"))
    found = difference(compare({"A": frame(one), "B": frame(two)}, SCALE), "percentage", rating="bad")
    assert (found.value, found.interval.how, found.apart) == (-100.0, "from both intervals", Apart.LOWER)
    assert found.interval.high is not None and -100 < found.interval.high < -60


def test_a_bound_at_zero_does_not_tell_apart() -> None:
    """One persona of twelve is better: every draw without it has no difference."""
    one = {p: ["bad"] * 2 for p in range(12)}
    found = difference(
        compare({"A": frame(one), "B": frame(one | {0: ["good"] * 2})}, SCALE), "percentage", rating="bad"
    )
    assert (found.interval.high, found.apart) == (0.0, Apart.NOT)


def test_one_persona_is_undefined() -> None:
    compared = compare({"A": frame({1: ["bad"] * 9}), "B": frame({1: ["good"] * 9})}, SCALE)
    found = difference(compared, "percentage", rating="bad")
    assert (found.value, found.apart, found.interval.how) == (-100.0, Apart.UNDEFINED, "undefined: one persona")
    assert found.few


def test_no_ratings_are_undefined() -> None:
    compared = compare({"A": frame({}), "B": frame({1: ["good"]})}, SCALE)
    assert {d.apart for d in compared.differences} == {Apart.UNDEFINED}


def test_every_side_is_compared_with_the_first() -> None:
    sides = {name: frame({p: [word] for p in range(12)}) for name, word in (("A", "bad"), ("B", "good"), ("C", "fair"))}
    compared = compare(sides, SCALE)
    assert list(compared.sides) == ["A", "B", "C"]
    assert {d.side for d in compared.differences} == {"B", "C"}
    # Two dimensions and all together: score, worst, best; and the conversations with any worst rating.
    assert len(compared.differences) == 2 * (3 * 3 + 1)


def test_a_scale_without_score_compares_shares() -> None:
    binary = replace(SCALE, ratings=("good", "bad"), not_relevant=None)
    words = {p: ["good" if p % 2 else "bad"] for p in range(12)}
    compared = compare({"A": frame(words), "B": frame(words)}, binary)
    assert {d.statistic for d in compared.differences} == {"percentage", "worst_percentage"}
