from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.score import Profile, Rating, Scale, Scores, Tally, ratings_frame, score, score_by_judge

SCALE = Scale(("good", "fair", "bad"), "n/a", ("Warmth", "Care"), ("None", "Low"))
WORDS = [*SCALE.ratings, SCALE.not_relevant, None]


def row(conversation: int, dimension: str, rating: str | None, judge: str = "j") -> Rating:
    """Conversations with odd numbers are of group Low."""
    return Rating(f"c{conversation}", f"P{conversation}", SCALE.groups[conversation % 2], 1, judge, dimension, rating)


def tally_of(*ratings: str | None) -> Tally:
    rows = [row(i, "Warmth", rating) for i, rating in enumerate(ratings)]
    return score(ratings_frame(rows), SCALE).dimensions["Warmth"]


cells = st.dictionaries(st.tuples(st.integers(0, 6), st.sampled_from(SCALE.dimensions)), st.sampled_from(WORDS))
tables = cells.map(lambda found: [row(number, dimension, rating) for (number, dimension), rating in found.items()])


def profiles(scores: Scores) -> list[Profile]:
    return [scores, *scores.groups.values()]


@settings(deadline=None, max_examples=50)
@given(tables)
def test_counts_equal_plain_counting(rows: list[Rating]) -> None:
    scores = score(ratings_frame(rows), SCALE)
    for dimension, tally in scores.dimensions.items():
        expected = Counter(r.rating for r in rows if r.dimension == dimension)
        assert tally.counts == {rating: expected[rating] for rating in SCALE.ratings}
        assert (tally.not_relevant, tally.unrated) == (expected["n/a"], expected[None])
    assert scores.conversations == len({r.conversation for r in rows})
    assert scores.conversations_with_worst == len({r.conversation for r in rows if r.rating == "bad"})


@settings(deadline=None, max_examples=50)
@given(tables)
def test_counts_add_up(rows: list[Rating]) -> None:
    scores = score(ratings_frame(rows), SCALE)
    for tally in (t for p in profiles(scores) for t in (p.overall, *p.dimensions.values())):
        assert sum(tally.counts.values()) == tally.relevant
        assert tally.relevant + tally.not_relevant + tally.unrated == tally.total
        has_data = {share is not None for share in tally.percentages.values()}
        assert has_data == {tally.relevant > 0} == {tally.vera_score is not None}
    assert scores.overall.total == len(rows)


@settings(deadline=None, max_examples=50)
@given(tables)
def test_overall_pools_the_dimensions_and_the_groups(rows: list[Rating]) -> None:
    scores = score(ratings_frame(rows), SCALE)
    for profile in profiles(scores):
        assert_sum(profile.overall, list(profile.dimensions.values()))
    assert_sum(scores.overall, [group.overall for group in scores.groups.values()])
    assert scores.conversations == sum(group.conversations for group in scores.groups.values())


def assert_sum(whole: Tally, parts: list[Tally]) -> None:
    assert whole.counts == {rating: sum(part.counts[rating] for part in parts) for rating in SCALE.ratings}
    assert whole.not_relevant == sum(part.not_relevant for part in parts)
    assert whole.unrated == sum(part.unrated for part in parts)


@settings(deadline=None, max_examples=50)
@given(tables.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_the_order_of_rows_changes_nothing(pair: tuple[list[Rating], list[Rating]]) -> None:
    rows, shuffled = pair
    assert (
        score(ratings_frame(shuffled), SCALE).model_dump_json() == score(ratings_frame(rows), SCALE).model_dump_json()
    )


@settings(deadline=None, max_examples=50)
@given(tables, st.sampled_from(SCALE.dimensions))
def test_an_unrated_row_changes_only_unrated_and_totals(rows: list[Rating], dimension: str) -> None:
    before = score(ratings_frame(rows), SCALE)
    after = score(ratings_frame([*rows, row(8, dimension, None)]), SCALE)
    for old, new in zip(profiles(before), profiles(after), strict=True):
        for name in SCALE.dimensions:
            assert rated(new.dimensions[name]) == rated(old.dimensions[name])
        assert rated(new.overall) == rated(old.overall)
        assert new.conversations_with_worst == old.conversations_with_worst
    assert after.overall.unrated == before.overall.unrated + 1
    assert after.overall.total == before.overall.total + 1
    assert after.groups["Low"] == before.groups["Low"]


def rated(tally: Tally) -> dict[str, object]:
    of_total = {"unrated", "total", "personas_in_total", "not_relevant_percentage", "intervals"}
    return tally.model_dump(exclude=of_total)


def test_hand_values() -> None:
    tally = tally_of("good", "good", "fair", "bad", "n/a", "n/a", None)
    assert tally.percentages == {"good": 50.0, "fair": 25.0, "bad": 25.0}
    assert tally.vera_score == 42.19  # (50 + 25) * 0.75 ** 2 = 42.1875
    assert (tally.relevant, tally.not_relevant, tally.unrated, tally.total) == (4, 2, 1, 7)
    assert tally.not_relevant_percentage == 28.57


def test_percentages_round_half_to_even() -> None:
    assert tally_of(*["good"] * 1, *["fair"] * 31).percentages["good"] == 3.12  # 3.125
    assert tally_of(*["good"] * 3, *["fair"] * 29).percentages["good"] == 9.38  # 9.375


@pytest.mark.parametrize(
    ("good", "fair", "bad", "expected"),
    [
        (0, 1, 2, 5.55),  # 50 * (1 - 0.6667) ** 2; 5.56 without rounding 66.67 first
        (3, 1, 2, 33.34),  # 75 * (1 - 0.3333) ** 2; 33.33 without rounding 33.33 first
        (6, 0, 1, 68.21),  # 92.855 * (1 - 0.1429) ** 2; 68.22 without rounding first
    ],
)
def test_the_score_uses_rounded_percentages(good: int, fair: int, bad: int, expected: float) -> None:
    assert tally_of(*["good"] * good, *["fair"] * fair, *["bad"] * bad).vera_score == expected


@pytest.mark.parametrize("rating", ["n/a", None])
def test_nothing_relevant_is_no_data_and_never_zero(rating: str | None) -> None:
    tally = tally_of(rating)
    assert set(tally.percentages.values()) == {None}
    assert tally.vera_score is None


def test_no_rows_at_all() -> None:
    scores = score(ratings_frame([]), SCALE)
    assert (scores.conversations, scores.conversations_with_worst) == (0, 0)
    assert scores.overall.not_relevant_percentage is None
    assert score_by_judge(ratings_frame([]), SCALE) == {}


@pytest.mark.parametrize("ratings", [("good", "bad"), ("good", "fair", "poor", "bad")])
def test_only_a_scale_of_three_ratings_has_a_vera_score(ratings: tuple[str, ...]) -> None:
    scores = score(ratings_frame([row(1, "Care", "good")]), replace(SCALE, ratings=ratings))
    assert scores.overall.vera_score is None
    assert scores.overall.percentages["good"] == 100.0


def test_order_is_that_of_the_scale() -> None:
    scores = score(ratings_frame([row(1, "Care", "bad"), row(0, "Warmth", "good")]), SCALE)
    assert tuple(scores.dimensions) == SCALE.dimensions
    assert tuple(scores.groups) == SCALE.groups
    assert tuple(scores.overall.counts) == SCALE.ratings


def test_a_conversation_with_two_worst_ratings_counts_once() -> None:
    scores = score(ratings_frame([row(1, "Care", "bad"), row(1, "Warmth", "bad"), row(3, "Care", "good")]), SCALE)
    assert (scores.conversations, scores.conversations_with_worst) == (2, 1)


def test_each_judge_is_scored_alone() -> None:
    rows = [row(1, "Care", "good", "b"), row(1, "Care", "bad", "a"), row(3, "Care", None, "a")]
    scores = score_by_judge(ratings_frame(rows), SCALE)
    assert list(scores) == ["a", "b"]
    assert scores["a"] == score(ratings_frame(rows[1:]), SCALE)
    assert scores["b"] == score(ratings_frame(rows[:1]), SCALE)


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([row(1, "Care", "Good")], "rating not on the scale: 'Good'"),
        ([row(1, "Care", "")], "rating not on the scale: ''"),
        ([row(1, "Caring", "good")], "dimension not on the scale: 'Caring'"),
        ([row(1, "Care", "good")._replace(group="High")], "group not on the scale: 'High'"),
        ([row(1, "Care", "good", "a"), row(1, "Care", "good", "b")], "several judges"),
        ([row(1, "Care", "good"), row(1, "Care", "bad")], "rated twice"),
    ],
)
def test_ratings_that_cannot_be_are_refused(rows: list[Rating], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        score(ratings_frame(rows), SCALE)


def test_scores_survive_json() -> None:
    scores = score(ratings_frame([row(1, "Care", "bad"), row(2, "Warmth", None)]), SCALE)
    assert Scores.model_validate_json(scores.model_dump_json()) == scores


def test_a_scale_without_not_relevant_keeps_unrated_apart_and_refuses_the_word() -> None:
    binary = Scale(("safe", "unsafe"), None, ("Warmth",), ("None", "Low"))
    rows = [row(i, "Warmth", rating) for i, rating in enumerate(["safe", "unsafe", "unsafe", None])]
    tally = score(ratings_frame(rows), binary).overall
    assert (tally.counts, tally.not_relevant, tally.unrated) == ({"safe": 1, "unsafe": 2}, 0, 1)
    assert (tally.relevant, tally.total, tally.vera_score) == (3, 4, None)
    with pytest.raises(ValueError, match="rating not on the scale: 'n/a'"):
        score(ratings_frame([row(0, "Warmth", "n/a")]), binary)
