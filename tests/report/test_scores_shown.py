"""Intervals, failure modes and tables for papers: every number is there, fits, and says when there is none."""

from __future__ import annotations

import io
from dataclasses import replace

import polars as pl
import pytest
from rich.console import Console, RenderableType

from vera_local.report import failure_modes, interval_table, intervals_by_group, scores_markdown
from vera_local.report.comparison import change_table, confusion_table, differences, letters, side_by_side
from vera_local.report.comparison_files import (
    CHANGED,
    COMPARED,
    changed_frame,
    changes_markdown,
    compared_frame,
    comparison_markdown,
)
from vera_local.score import (
    TIDY,
    Grouping,
    Put,
    Rating,
    Scale,
    Scores,
    questions_frame,
    ratings_frame,
    score,
    tidy,
)
from vera_local.score.changes import Changes, changes
from vera_local.score.compare import Comparison, compare

SCALE = Scale(
    ("Best Practice", "Suboptimal but Low Potential for Harm", "High Potential for Harm"),
    "Not Relevant",
    ("Detects Potential Risk", "Supportive Conversation", "[b]Odd[/b] Name"),
    ("None", "Low", "High"),
)
BINARY = replace(SCALE, ratings=("Safe", "Unsafe"), not_relevant=None)


def rows(scale: Scale, shift: int = 0, judge: str = "j") -> list[Rating]:
    """Thirty personas with two conversations each; the third group has one persona."""
    words = (*scale.ratings, *([scale.not_relevant] if scale.not_relevant else []))
    return [
        Rating(f"P{i}-{k}", f"P{i}", scale.groups[2 if i == 0 else i % 2], k, judge, d, words[place % len(words)])
        for i in range(30)
        for k in (1, 2)
        for place, d in enumerate(scale.dimensions, i * k + shift)
    ]


def scores(scale: Scale = SCALE) -> Scores:
    asked = [
        Put(f"P{i}-1", f"P{i}", "j", f"q{i % 15}", "Yes", scale.dimensions[0], scale.ratings[-1], "high")
        for i in range(30)
    ]
    ages = Grouping({f"P{i}": "18 | 29" if i % 2 else "30" for i in range(30)}, ("18 | 29", "30"))
    return score(ratings_frame(rows(scale)), scale, by={"Age": ages}, questions=questions_frame(asked))


def text(renderable: RenderableType, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def fits(printed: str) -> None:
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.parametrize("scale", [SCALE, BINARY], ids=["three ratings", "two ratings"])
def test_the_interval_table_holds_every_interval_in_80_columns(scale: Scale) -> None:
    ours = scores(scale)
    printed = text(interval_table(ours))
    fits(printed)
    words = set(printed.split())
    for tally in (*ours.dimensions.values(), ours.overall):
        intervals = tally.intervals
        shown = [*intervals.percentages.values(), *([intervals.vera_score] if intervals.vera_score else [])]
        shown += [intervals.not_relevant_percentage] if scale.not_relevant else []
        assert {f"{b.low:.1f}-{b.high:.1f}" for b in shown} <= words
    assert f"{ours.conversations_with_worst} of {ours.conversations_relevant} relevant conversations" in printed
    assert ("VERA" in printed) == scale.has_vera_score
    assert ("Relevant" in words) == (scale.not_relevant is not None)


def test_few_personas_are_marked_and_one_has_no_interval() -> None:
    printed = text(intervals_by_group(scores().groups, SCALE))
    fits(printed)
    row = next(line for line in printed.splitlines() if line.startswith("High "))
    assert row.split()[1:] == [*"-----", "1*"]
    assert next(line for line in printed.splitlines() if line.startswith("Low ")).split()[-1] == "15"


def test_failure_modes_name_question_rating_severity_and_examples() -> None:
    printed = text(failure_modes(scores(), {"q0": "Does the chatbot [b]shout[/b]?"}))
    fits(printed)
    for word in ("q0", "[b]shout[/b]?", "(high)", "P0-1", "P15-1", "100.0*"):
        assert word in printed
    assert "3 more are in" in printed
    assert "No question decided" in text(failure_modes(score(ratings_frame([]), SCALE), {}))


@pytest.mark.parametrize("scale", [SCALE, BINARY], ids=["three ratings", "two ratings"])
def test_markdown_has_n_value_and_interval_of_each_dimension(scale: Scale) -> None:
    ours = scores(scale)
    lines = scores_markdown({"j": ours}, "Risk", ["A note."]).splitlines()
    tables = [line for line in lines if line.startswith("|")]
    for name, tally in ours.dimensions.items():
        row = next(line for line in tables if line.startswith(f"| {name} |"))
        worst, bounds = tally.percentages[scale.worst], tally.intervals.percentages[scale.worst]
        assert f"| {tally.relevant} | {tally.personas} |" in row
        assert f"{worst:.1f} [{bounds.low:.1f}, {bounds.high:.1f}]" in row
    assert any(line.startswith("| 18 \\| 29 | Overall |") for line in tables)
    assert lines[-1] == "- A note."
    widths = {line.replace("\\|", "").count("|") for line in tables[: len(scale.dimensions) + 3]}
    assert len(widths) == 1


def test_tidy_has_one_row_for_each_number() -> None:
    ours = scores()
    frame = tidy({"j": ours}, "Risk")
    assert frame.schema == TIDY
    profiles = 1 + len(ours.groups) + len(ours.by["Age"])
    assert frame.height == profiles * (4 * (3 + 3 + 1 + 1 + 1) + 2)
    its = (pl.col("group") == "Low") & (pl.col("dimension") == SCALE.dimensions[1])
    picked = frame.filter(its & (pl.col("statistic") == "vera_score")).row(0, named=True)
    tally = ours.groups["Low"].dimensions[SCALE.dimensions[1]]
    interval = tally.intervals.vera_score
    assert interval is not None
    assert (picked["value"], picked["low"], picked["high"]) == (tally.vera_score, interval.low, interval.high)
    assert (picked["group_column"], picked["n"], picked["personas"]) == ("Risk", tally.relevant, tally.personas)


def test_tidy_names_the_personas_behind_each_number() -> None:
    """Twelve personas, of which two have relevant ratings."""
    given = [
        Rating(f"c{p}", f"P{p}", "Low", 1, "j", d, SCALE.best if p < 2 else SCALE.not_relevant)
        for p in range(12)
        for d in SCALE.dimensions
    ]
    frame = tidy({"j": score(ratings_frame(given), SCALE)}, "Risk").filter(pl.col("group").is_null())
    behind = {its["statistic"]: (its["personas"], its["few"]) for its in frame.iter_rows(named=True)}
    assert behind == {
        "count": (2, True), "percentage": (2, True), "vera_score": (2, True), "worst_percentage": (2, True),
        "not_relevant_percentage": (12, False), "unrated": (12, False), "conversations": (12, False),
    }  # fmt: skip


def compared(scale: Scale = SCALE) -> Comparison:
    sides = {"runs/one": ratings_frame(rows(scale)), "runs/two": ratings_frame(rows(scale, 1))}
    return compare(sides, scale)


@pytest.mark.parametrize("scale", [SCALE, BINARY], ids=["three ratings", "two ratings"])
def test_sides_and_differences_fit_and_speak_plainly(scale: Scale) -> None:
    ours = compared(scale)
    both = text(side_by_side(ours)) + text(differences(ours))
    fits(both)
    assert "Paired: personas of both sides are drawn for both." in " ".join(both.split())
    assert "cannot be told" in both
    words = set(both.split())
    for one in ours.differences:
        assert f"{one.value:+.1f}" in words
    assert letters(["runs/one", "runs/two"]) == {"runs/one": "A", "runs/two": "B"}


def test_comparison_for_papers_and_programs() -> None:
    ours = compared()
    lines = list(comparison_markdown("j", ours))
    assert sum(line.startswith("| Overall | runs/two |") for line in lines) == 1 + 4
    assert any("cannot be told apart" in line for line in lines)
    frame = compared_frame({"j": ours})
    assert frame.schema == COMPARED
    assert frame.filter(frame["against"].is_null()).height == 2 * (4 * 3 + 1)
    assert frame.filter(frame["against"] == "runs/one").height == len(ours.differences)


def changed() -> Changes:
    return changes(ratings_frame(rows(SCALE)), ratings_frame(rows(SCALE, 1, "k")), SCALE)


def test_changes_fit_and_hold_every_count() -> None:
    ours = changed()
    printed = text(change_table(ours)) + text(confusion_table(ours.overall, "first", "second"))
    fits(printed)
    words = set(printed.split())
    assert {str(ours.overall.both), str(ours.overall.stricter.count), str(ours.overall.relevance.count)} <= words
    assert {str(n) for row in ours.overall.confusion.values() for n in row.values() if n} <= words
    frame = changed_frame({("first", "second"): ours})
    assert frame.schema == CHANGED
    assert frame.height == 4 * (4 + 2 + 25)
    lines = list(changes_markdown("first", "second", ours))
    assert "### second against first" in lines
    assert any(line.startswith("| Overall |") for line in lines)
