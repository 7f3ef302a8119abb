"""How an interval is chosen: Wilson's, the bootstrap, or none, and what each says of itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.score.bounds import (
    FROM_BOTH,
    Bounds,
    bounds_from_both,
    bounds_of_difference,
    bounds_of_score,
    bounds_of_share,
)
from vera_local.score.intervals import Floats

SPREAD = np.linspace(10.0, 30.0, 2001)
SAME = np.full(2000, 40.0)


def never() -> Floats:
    raise AssertionError("nothing is to be drawn")


def test_one_conversation_for_each_persona_is_wilsons() -> None:
    # 81 of 263: Newcombe 1998, table I, method 3.
    assert bounds_of_share(81, 263, 263, never) == Bounds(low=25.53, high=36.62, how="Wilson")


def test_several_conversations_for_a_persona_are_drawn_with_it() -> None:
    assert bounds_of_share(40, 200, 100, lambda: SPREAD) == Bounds(low=10.5, high=29.5, how="bootstrap")


def test_where_all_draws_are_the_same_each_persona_counts_once() -> None:
    assert bounds_of_share(0, 200, 20, lambda: np.zeros(2000)) == Bounds(low=0, high=16.11, how="Wilson over personas")
    assert bounds_of_share(200, 200, 20, lambda: SAME) == Bounds(low=83.89, high=100, how="Wilson over personas")


@pytest.mark.parametrize(("personas", "why"), [(0, "undefined: no data"), (1, "undefined: one persona")])
def test_no_persona_and_one_persona_have_no_interval(personas: int, why: str) -> None:
    nothing = Bounds(low=None, high=None, how=why)
    assert bounds_of_share(personas, 5 * personas, personas, never) == nothing
    assert bounds_of_score(personas, 0, 5 * personas, personas, never) == nothing


def test_a_number_that_many_draws_lack_has_no_interval() -> None:
    drawn = SPREAD.copy()
    drawn[:101] = np.nan
    found = bounds_of_share(3, 30, 9, lambda: drawn)
    assert (found.low, found.high) == (None, None)
    assert found.how == "undefined: in 101 of 2001 draws there is no such number"


def test_a_score_that_never_varies_is_bounded_by_both_shares() -> None:
    found = bounds_of_score(200, 0, 200, 20, lambda: SAME)
    # 20 of 20 best: at least 83.89 %; 0 of 20 worst: at most 16.11 %.
    assert found == Bounds(low=round((50 + 83.887 / 2) * 0.83887**2, 2), high=100, how="Wilson over personas")


@settings(deadline=None)
@given(st.integers(2, 300), st.integers(0, 300), st.integers(0, 300))
def test_the_bounds_of_a_score_hold_it(n: int, best: int, worst: int) -> None:
    best, worst = min(best, n), min(worst, n - min(best, n))
    found = bounds_of_score(best, worst, n, n, lambda: SAME)
    score = (50 + 50 * best / n) * (1 - worst / n) ** 2
    assert found.low is not None and found.high is not None
    assert -0.01 <= found.low <= score + 0.01 and score - 0.01 <= found.high <= 100.01


def test_the_difference_of_two_shares_as_published() -> None:
    # Newcombe 1998, Statistics in Medicine 17, 873-890, table II, method 10: 56/70 less 48/80.
    fewer, more = bounds_of_share(48, 80, 80, never), bounds_of_share(56, 70, 70, never)
    found = bounds_from_both(60.0, fewer, 80.0, more)
    assert (found.low, found.high) == pytest.approx((5.24, 33.39), abs=0.02)
    assert found.how == FROM_BOTH


def test_a_difference_without_width_has_no_bootstrap_interval() -> None:
    assert bounds_of_difference(SAME) is None
    found = bounds_of_difference(SPREAD)
    assert found is not None and (found.low, found.high) == (10.5, 29.5)
