"""What is asked of which raters, on a few ratings that can be checked by hand."""

from __future__ import annotations

import pytest

from vera_local.errors import UserError
from vera_local.score.estimate import Sampling
from vera_local.score.intervals import Interval, Undefined
from vera_local.score.labels import Labels, Rated, Words, gather
from vera_local.score.raters import (
    CONSTANT,
    MODE,
    ONE_OF_THEM,
    POOLED,
    WITHIN,
    Finding,
    Question,
    Report,
    Section,
    examine,
)

WORDS = Words(("good", "fair", "bad"), ("none",))
QUICK = Sampling(draws=100)
# item, dimension -> the ratings of a, b and c.
RATINGS = {
    ("1", "x"): "good good good", ("1", "y"): "bad bad fair",
    ("2", "x"): "good good fair", ("2", "y"): "bad fair none",
    ("3", "x"): "none none none", ("3", "y"): "bad bad bad",
    ("4", "x"): "fair good -", ("4", "y"): "fair fair fair",
}  # fmt: skip


@pytest.fixture
def labels() -> Labels:
    rows = [
        Rated(item, dimension, rater, rating, "here")
        for (item, dimension), ratings in RATINGS.items()
        for rater, rating in zip("abc", ratings.split(), strict=True)
        if rating != "-"
    ]
    return gather(rows, WORDS, chatbots={"1": "p", "2": "p", "3": "q", "4": "q"})


def of(report: Report, section: Section, subject: str, statistic: str) -> dict[str, Finding]:
    return {
        f.dimension: f for f in report.findings if (f.section, f.subject, f.statistic) == (section, subject, statistic)
    }


def test_raters_among_themselves(labels: Labels) -> None:
    report = examine(labels, Question({"people": ("a", "b", "c")}), QUICK)
    agreement = of(report, Section.AMONG, "people", "agreement")
    assert {d: f.n for d, f in agreement.items()} == {"x": 4, "y": 4, POOLED: 8}
    assert agreement["x"].value == pytest.approx((1 + 1 / 3 + 1 + 0) / 4)
    assert agreement["y"].value == pytest.approx((1 / 3 + 0 + 1 + 1) / 4)
    within = of(report, Section.AMONG, "people", "alpha, nominal")[WITHIN]
    assert within.n == 8 and isinstance(within.value, float) and isinstance(within.interval, Interval)
    assert of(report, Section.AMONG, "people", "Fleiss' kappa")["x"].value == Undefined(
        "items have from 2 to 3 ratings each"
    )
    assert not report.confused and not report.unsettled


def test_ordinal_statistics_leave_out_what_is_off_the_scale(labels: Labels) -> None:
    report = examine(labels, Question({"people": ("a", "b", "c")}), QUICK)
    assert of(report, Section.AMONG, "people", "alpha, ordinal")["x"].n == 3
    assert of(report, Section.AMONG, "people", "alpha, nominal")["x"].n == 4


def test_without_a_scale_there_are_no_ordinal_statistics(labels: Labels) -> None:
    plain = gather([Rated("1", "x", r, "yes", "") for r in "ab"], Words((), ("no", "yes")))
    names = {f.statistic for f in examine(plain, Question({"two": ("a", "b")}), QUICK).findings}
    assert names == {"agreement", "kappa", "alpha, nominal", "AC1"}


def test_pairs(labels: Labels) -> None:
    report = examine(labels, Question({"one": ("a", "b"), "two": ("c",)}), QUICK)
    pairs = {f.subject: f.n for f in report.findings if f.section is Section.PAIR and f.dimension == POOLED}
    assert pairs == {"a x b": 8, "a x c": 7, "b x c": 7}
    assert not of(report, Section.AMONG, "two", "agreement")


def test_one_rater_against_another(labels: Labels) -> None:
    report = examine(labels, Question({"all": ("b", "c")}, ("a",), ("b", "c")), QUICK)
    found = of(report, Section.REFERENCE, "b", "agreement")
    assert (found[POOLED].n, found[POOLED].value) == (8, 6 / 8)
    counts = next(c for c in report.confused if (c.subject, c.dimension) == ("b", POOLED)).counts
    assert counts.tolist() == [[2, 0, 0, 0], [1, 1, 0, 0], [0, 1, 2, 0], [0, 0, 0, 1]]
    values = [of(report, Section.REFERENCE, r, "kappa")[POOLED].value for r in "bc"]
    mean = of(report, Section.REFERENCE, "mean of 2 raters", "kappa")
    assert mean[POOLED].value == pytest.approx(sum(v for v in values if isinstance(v, float)) / 2)
    assert mean.keys() == {"x", "y", POOLED, WITHIN}


def test_the_majority_and_those_who_make_it(labels: Labels) -> None:
    report = examine(labels, Question({"all": ("a", "b", "c")}, ("a", "b", "c"), ()), QUICK)
    assert [tuple(u) for u in report.unsettled] == [("x", 4, 1, 0, 0), ("y", 4, 1, 0, 0), (POOLED, 8, 2, 0, 0)]
    one = of(report, Section.REFERENCE, ONE_OF_THEM, "agreement")[POOLED]
    # Two others agree: 1x and 3x, 3y, 4y for each of the three, 1y and 2x for one of them, who is alone.
    assert one.n == 14
    assert one.value == pytest.approx(12 / 14)


def test_baselines(labels: Labels) -> None:
    report = examine(labels, Question({"all": ("b", "c")}, ("a",), ("b",)), QUICK)
    flat = of(report, Section.REFERENCE, CONSTANT, "agreement")
    assert (flat["x"].value, flat["y"].value, flat[POOLED].value) == (0.5, 0.75, 0.625)
    assert of(report, Section.REFERENCE, CONSTANT, "kappa")[WITHIN].value == 0
    # Of chatbot p the other item has the same rating in both dimensions; of chatbot q never.
    assert of(report, Section.REFERENCE, MODE, "agreement")[POOLED].value == 0.5


def test_dimensions_in_a_given_order() -> None:
    rows = [Rated("1", d, "a", "good", "") for d in "zxy"]
    assert gather(rows, WORDS, dimensions=("x", "w", "y")).dimensions == ("x", "y", "z")


def test_a_rating_given_twice() -> None:
    rows = [Rated("1", "x", "a", "good", "f.csv, line 2"), Rated("1", "x", "a", "good", "f.csv, line 5")]
    with pytest.raises(UserError, match=r"f.csv, line 5: 'a' has rated '1' \(x\) before, in f.csv, line 2"):
        gather(rows, WORDS)
