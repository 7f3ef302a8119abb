"""Which questions decided ratings: counted, ordered, with examples and intervals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.score import Put, Scale, questions_frame
from vera_local.score.modes import QUESTIONS, decisions

SCALE = Scale(("good", "fair", "bad"), "n/a", ("Warmth", "Care"), ("g",))


def asked(conversation: int, question: str, *decided: str | None) -> Put:
    dimension, rating, severity = (*decided, None, None, None)[:3]
    return Put(f"c{conversation}", f"P{conversation // 2}", "j", question, "Yes", dimension, rating, severity)


def test_shares_are_of_the_conversations_in_which_it_was_asked() -> None:
    rows = [asked(i, "1", "Warmth", "bad", "high") if i < 3 else asked(i, "1") for i in range(20)]
    rows += [asked(i, "2") for i in range(20, 30)]
    (one,) = decisions(questions_frame(rows), SCALE)
    assert (one.question, one.dimension, one.rating, one.severity) == ("1", "Warmth", "bad", "high")
    assert (one.decided, one.asked, one.percentage, one.personas, one.few) == (3, 20, 15.0, 10, False)
    assert one.interval.how == "bootstrap"
    assert one.interval.low is not None and one.interval.high is not None
    assert 0 <= one.interval.low <= 15 <= one.interval.high <= 60
    assert one.examples == ("c0", "c1", "c2")


def test_a_question_that_decides_two_dimensions_was_asked_once() -> None:
    rows = [asked(i, "1", dimension, "n/a") for i in range(4) for dimension in SCALE.dimensions]
    assert [(d.decided, d.asked, d.percentage) for d in decisions(questions_frame(rows), SCALE)] == [(4, 4, 100.0)] * 2


def test_examples_are_three_and_do_not_depend_on_the_order_of_rows() -> None:
    rows = [asked(i, "1", "Warmth", "bad") for i in (5, 2, 9, 4)]
    for order in (rows, rows[::-1]):
        assert decisions(questions_frame(order), SCALE)[0].examples == ("c2", "c4", "c5")


def test_the_worst_comes_first_then_the_most_frequent_then_what_rated_nothing() -> None:
    rows = [
        asked(1, "a", "Warmth", "fair", "medium"), asked(2, "a", "Warmth", "fair", "medium"),
        asked(1, "b", "Care", "bad", "high"),
        asked(1, "c", "Care", "bad", "high"), asked(2, "c", "Care", "bad", "high"),
        asked(1, "d", "Warmth", None), asked(1, "d", "Care", None),
        asked(1, "e", "Warmth", "n/a"),
    ]  # fmt: skip
    found = decisions(questions_frame(rows), SCALE)
    told = [(d.question, d.dimension, d.rating) for d in found]
    assert told == [
        ("c", "Care", "bad"), ("b", "Care", "bad"), ("a", "Warmth", "fair"),
        ("e", "Warmth", "n/a"), ("d", "Care", None), ("d", "Warmth", None),
    ]  # fmt: skip


def test_a_question_asked_of_one_persona_has_no_interval_and_is_marked() -> None:
    (one,) = decisions(questions_frame([asked(0, "1", "Care", "bad"), asked(1, "1")]), SCALE)
    assert (one.personas, one.few, one.interval.how) == (1, True, "undefined: one persona")


def test_nothing_decided_is_nothing_told() -> None:
    assert decisions(questions_frame([asked(0, "1")]), SCALE) == ()
    assert decisions(questions_frame([]), SCALE) == ()
    assert questions_frame([]).schema == QUESTIONS


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("ab"), st.sampled_from(["bad", "fair", "n/a", None]))))
def test_no_question_decides_more_often_than_it_is_asked(found: list[tuple[int, str, str | None]]) -> None:
    rows = {(i, q): asked(i, q, "Care", rating) for i, q, rating in found}
    made = decisions(questions_frame(rows.values()), SCALE)
    for question in "ab":
        its = [d for d in made if d.question == question]
        assert {d.asked for d in its} <= {sum(q == question for _, q in rows)}
        assert sum(d.decided for d in its) == sum(q == question for _, q in rows)
        assert all(d.percentage == pytest.approx(100 * d.decided / d.asked, abs=0.005) for d in its)
