"""What changes with the judge: kinds of change, direction and confusion, on the conversations that both rated."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.score import Rating, Scale, ratings_frame
from vera_local.score.changes import Change, changes

SCALE = Scale(("good", "fair", "bad"), "n/a", ("Warmth",), ("g",))
WORDS: list[str | None] = [*SCALE.ratings, SCALE.not_relevant, None]
pairs = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), max_size=40)


def frame(words: Sequence[str | None], judge: str) -> pl.DataFrame:
    """Two conversations of each persona."""
    return ratings_frame(Rating(f"c{i}", f"P{i // 2}", "g", 1, judge, "Warmth", word) for i, word in enumerate(words))


def change(found: Sequence[tuple[str | None, str | None]]) -> Change:
    return changes(frame([one for one, _ in found], "a"), frame([two for _, two in found], "b"), SCALE).overall


def counts(found: Change) -> tuple[int, int, int, int]:
    return found.same.count, found.stricter.count, found.milder.count, found.relevance.count


def test_kinds_counted_by_hand() -> None:
    found = change(
        [("good", "good"), ("n/a", "n/a"), ("good", "bad"), ("good", "fair"), ("bad", "fair"),
         ("bad", "n/a"), ("n/a", "good"), (None, "bad"), ("good", None), (None, None)]
    )  # fmt: skip
    assert counts(found) == (2, 2, 1, 2)
    assert (found.both, found.unrated, found.personas, found.few) == (7, 3, 4, True)
    assert (found.stricter.percentage, found.milder.percentage, found.net) == (28.57, 14.29, 14.29)
    assert found.confusion["good"] == {"good": 1, "fair": 1, "bad": 1, "n/a": 0, "Unrated": 1}
    assert found.confusion["Unrated"] == {"good": 0, "fair": 0, "bad": 1, "n/a": 0, "Unrated": 1}


@settings(deadline=None, max_examples=40)
@given(pairs)
def test_kinds_add_up_and_confusion_holds_every_case(found: list[tuple[str | None, str | None]]) -> None:
    told = change(found)
    assert sum(counts(told)) == told.both
    assert told.both + told.unrated == len(found)
    assert sum(n for row in told.confusion.values() for n in row.values()) == len(found)
    assert sum(told.confusion[w][w] for w in told.confusion if w != "Unrated") == told.same.count


@settings(deadline=None, max_examples=40)
@given(pairs)
def test_the_other_way_round_stricter_is_milder(found: list[tuple[str | None, str | None]]) -> None:
    told, back = change(found), change([(two, one) for one, two in found])
    assert (back.stricter, back.milder, back.same, back.relevance) == (
        told.milder,
        told.stricter,
        told.same,
        told.relevance,
    )
    assert back.confusion == {a: {b: told.confusion[b][a] for b in told.confusion} for a in told.confusion}
    opposite = {"stricter": "milder", "milder": "stricter"}
    assert back.direction == opposite.get(told.direction, told.direction)


@pytest.mark.parametrize(
    ("found", "direction"),
    [
        ([("good", "bad"), ("good", "good")] * 20, "stricter"),
        ([("bad", "good"), ("good", "good")] * 20, "milder"),
        ([("good", "bad"), ("bad", "good")] * 20, "cannot be told apart"),
        ([("good", "good")] * 40, "cannot be told apart"),
        ([("good", "bad")] * 2, "undefined"),
        ([], "undefined"),
    ],
)
def test_direction(found: list[tuple[str | None, str | None]], direction: str) -> None:
    assert change(found).direction == direction


def test_conversations_of_one_judge_alone_are_left_out() -> None:
    told = changes(frame(["good"] * 9, "a"), frame(["good"] * 4, "b"), SCALE)
    assert (told.conversations, told.overall.both) == (4, 4)
