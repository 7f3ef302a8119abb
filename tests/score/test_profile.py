"""Intervals of a profile: held by its numbers, unmoved by order and names, honest where there is little."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.score import Bounds, Grouping, Profile, Rating, Scale, Tally, ratings_frame, score
from vera_local.score.intervals import bootstrap_weights

SCALE = Scale(("good", "fair", "bad"), "n/a", ("Warmth", "Care"), ("None", "Low"))
BINARY = Scale(("Safe", "Unsafe"), None, ("Warmth", "Care"), ("None", "Low"))
WORDS = [*SCALE.ratings, SCALE.not_relevant, None]


def row(persona: int, repeat: int, dimension: str, rating: str | None) -> Rating:
    return Rating(f"P{persona}-{repeat}", f"P{persona}", SCALE.groups[persona % 2], repeat, "j", dimension, rating)


keys = st.tuples(st.integers(0, 12), st.integers(1, 3), st.sampled_from(SCALE.dimensions))
tables = st.dictionaries(keys, st.sampled_from(WORDS), max_size=60).map(
    lambda found: [row(*key, rating) for key, rating in found.items()]
)


def profiles(rows: list[Rating], scale: Scale = SCALE) -> list[Profile]:
    scores = score(ratings_frame(rows), scale)
    return [scores, *scores.groups.values()]


def told(tally: Tally) -> Iterator[tuple[float | None, Bounds]]:
    yield from ((tally.percentages[r], b) for r, b in tally.intervals.percentages.items())
    yield tally.not_relevant_percentage, tally.intervals.not_relevant_percentage
    if tally.intervals.vera_score is not None:
        yield tally.vera_score, tally.intervals.vera_score


@settings(deadline=None, max_examples=40)
@given(tables)
def test_every_number_has_an_interval_or_a_reason(rows: list[Rating]) -> None:
    for profile in profiles(rows):
        numbers = [n for t in (*profile.dimensions.values(), profile.overall) for n in told(t)]
        for value, bounds in [*numbers, (profile.worst_percentage, profile.worst_interval)]:
            if bounds.low is None or bounds.high is None:
                assert bounds.how.startswith("undefined: ")
            else:
                assert value is not None and 0 <= bounds.low <= bounds.high <= 100
                assert bounds.low < bounds.high
            assert (value is None) == (bounds.how == "undefined: no data")


@settings(deadline=None, max_examples=40)
@given(tables)
def test_personas_and_conversations_behind_each_cell(rows: list[Rating]) -> None:
    for profile in profiles(rows)[:1]:
        for name, tally in profile.dimensions.items():
            relevant = [r for r in rows if r.dimension == name and r.rating in SCALE.ratings]
            assert tally.personas == len({r.persona for r in relevant})
            assert tally.conversations == len({r.conversation for r in relevant}) == tally.relevant
            assert tally.few == (tally.personas < 10)
            assert tally.personas_in_total == len({r.persona for r in rows if r.dimension == name})
        relevant = [r for r in rows if r.rating in SCALE.ratings]
        assert (
            profile.conversations_relevant == len({r.conversation for r in relevant}) == profile.overall.conversations
        )
        assert profile.personas == len({r.persona for r in rows})
        assert profile.personas_relevant == len({r.persona for r in relevant})


@settings(deadline=None, max_examples=20)
@given(tables.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_order_does_not_move_an_interval(pair: tuple[list[Rating], list[Rating]]) -> None:
    assert profiles(pair[0]) == profiles(pair[1])


def test_one_persona_has_numbers_and_no_interval() -> None:
    rows = [row(1, repeat, "Care", rating) for repeat, rating in enumerate(["good", "bad", "fair", "n/a"], 1)]
    scores = score(ratings_frame(rows), SCALE)
    tally = scores.dimensions["Care"]
    assert tally.percentages["bad"] == 33.33
    assert {bounds.how for _, bounds in told(tally)} == {"undefined: one persona"}
    assert scores.worst_interval.how == "undefined: one persona"


def test_a_dimension_that_most_draws_miss_says_so() -> None:
    """Two personas of forty are relevant: more than one draw in twenty takes neither."""
    rows = [row(i, repeat, "Care", ["good", "bad"][i] if i < 2 else "n/a") for i in range(40) for repeat in (1, 2)]
    bounds = score(ratings_frame(rows), SCALE).dimensions["Care"].intervals.percentages["bad"]
    assert bounds.low is None and bounds.how.endswith("draws there is no such number")


def test_the_bootstrap_of_the_score_is_that_of_pooled_counts() -> None:
    """Against the formula written out, on the same draws."""
    words = ["good", "good", "fair", "bad"]
    rows = [row(i, k, d, words[(i * k + len(d)) % 4]) for i in range(12) for k in (1, 2) for d in SCALE.dimensions]
    personas = sorted({r.persona for r in rows})
    by_persona = np.array(
        [[sum(r.persona == p and r.rating == w for r in rows) for w in SCALE.ratings] for p in personas]
    )
    sums = bootstrap_weights(len(personas)) @ by_persona
    shares = 100 * sums / sums.sum(axis=1, keepdims=True)
    low, high = np.quantile((50 + shares[:, 0] / 2) * (1 - shares[:, 2] / 100) ** 2, [0.025, 0.975])
    found = score(ratings_frame(rows), SCALE).overall.intervals.vera_score
    assert found is not None and (found.low, found.high) == pytest.approx((low, high), abs=0.006)
    assert found.how == "bootstrap"


def test_repeats_with_a_persona_do_not_narrow_its_interval() -> None:
    """Twenty personas whose ten conversations all agree are as uncertain as twenty conversations."""
    rows = [row(i, k, "Care", "bad" if i < 6 else "good") for i in range(20) for k in range(1, 11)]
    found = score(ratings_frame(rows), SCALE).dimensions["Care"].intervals.percentages["bad"]
    assert found.low is not None and found.high is not None
    assert (found.low, found.high) == pytest.approx((10, 50), abs=5.1)


def test_two_ratings_and_no_not_relevant() -> None:
    rows = [row(i, 1, "Care", BINARY.ratings[i % 2]) for i in range(20)]
    tally = score(ratings_frame(rows), BINARY).dimensions["Care"]
    assert tally.percentages == {"Safe": 50.0, "Unsafe": 50.0}
    assert tally.intervals.percentages["Unsafe"] == Bounds(low=29.93, high=70.07, how="Wilson")
    assert tally.intervals.vera_score is None and tally.vera_score is None


def test_any_persona_column_gives_groups() -> None:
    rows = [row(i, 1, "Care", "bad" if i else "good") for i in range(5)]
    ages = Grouping({f"P{i}": "old" if i > 2 else "young" for i in range(4)}, ("young", "old", "none"))
    scores = score(ratings_frame(rows), SCALE, by={"Age": ages})
    assert list(scores.by["Age"]) == ["young", "old", "none", "Unknown"]
    assert [p.conversations for p in scores.by["Age"].values()] == [3, 1, 0, 1]
    assert scores.by["Age"]["young"].overall.counts == {"good": 1, "fair": 0, "bad": 2}
    assert scores.groups == score(ratings_frame(rows), SCALE).groups
