from __future__ import annotations

from pathlib import Path

from vera_local.report.judges import alike_lines, doubt_lines, jury_lines
from vera_local.score.alike import Share


def test_a_jury_is_told_with_its_members_what_it_waits_for_and_its_rule() -> None:
    juries = {"a (majority of 2)": ("a", "a#2"), "jury": ("a (majority of 2)", "b")}
    assert jury_lines(juries, {"a (majority of 2)": 0, "jury": 3}, "the worse wins.") == [
        "a (majority of 2): joined from a, a#2.",
        "jury: joined from a (majority of 2), b; conversations that not all of them have rated: 3.",
        "Rule: the worse wins.",
    ]
    assert jury_lines({}, {}, "the worse wins.") == []


def test_doubts_are_told_with_where_to_look() -> None:
    (one,) = doubt_lines({"a": 3}, Path("run"))
    assert one.startswith("Uncertain answers, to be looked at: 3; they are in verdicts.csv, column doubt, and in ")
    assert "`vera-local show run CONVERSATION`" in one
    (two,) = doubt_lines({"a": 3, "b": 1}, Path("run"))
    assert "looked at: 4 (a: 3, b: 1);" in two
    assert doubt_lines({}, Path("run")) == []


def test_shares_are_told_with_their_counts() -> None:
    assert alike_lines({"a (majority of 2)": Share(9, 12)}, {("a", "b"): Share(2, 3), ("a", "c"): Share(0, 0)}) == [
        "a (majority of 2): 9 of 12 (75.0%) questions asked by each were answered alike.",
        "a and b: 2 of 3 (66.7%) ratings are equal.",
        "a and c: 0 of 0 ratings are equal.",
    ]
