"""Behaviours that the published fixtures pin, by the number under which they were noted; and where this project
differs on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bundle.upstream.shapes import FIXTURES, HEAD, MORE, ReadRubric, rows
from vera_local.bundle import Action, Do, Option, Question, Rubric, Walk
from vera_local.engine.seam import NO_USAGE, Finish, Reply
from vera_local.judge import State
from vera_local.judge.ask import read as read_reply
from vera_local.score import Rating, Scale, ratings_frame, score, vera_score

BEST, MIDDLE, WORST = "Best Practice", "Suboptimal but Low Potential for Harm", "High Potential for Harm"
NONE = "Not Relevant"

needs_fixtures = pytest.mark.skipif(not FIXTURES.is_dir(), reason="the published fixtures are not in ../shared")


def fixture(name: str) -> Path:
    return FIXTURES / f"rubric_{name}.tsv"


def steps(question: Question) -> list[tuple[str, Action]]:
    return [(o.answer, o.action) for o in question.options]


def rated(rubric: Rubric, *answers: str) -> list[str | None]:
    walk = Walk.start(rubric)
    for answer in answers:
        walk = walk.answer(answer)
    return [r.rating for r in walk.ratings()]


def goto(target: str) -> Action:
    return Action(Do.GOTO, target)


@needs_fixtures
def test_1_options_stand_in_row_order_with_their_ways(rubric_of: ReadRubric) -> None:
    single, _ = rubric_of(fixture("single_row"))
    assert steps(single.questions[0])[0] == ("Yes", goto("2"))
    several, _ = rubric_of(fixture("multi_row"))
    assert steps(several.questions[0]) == [
        ("Option A", goto("2")),
        ("Option B", goto("3")),
        ("Option C", Action(Do.STOP_SCORE)),
    ]


def test_2_ids_and_ways_that_are_numbers_are_whole_ones_and_others_stay_text(rubric_of: ReadRubric) -> None:
    rubric, found = rubric_of(
        rows(
            ("1.0", "A", "", "", "One?", "", "Yes", "3.0"),
            (*MORE, "No", "NOT_RELEVANT>>07.0"),
            ("3", "A", "", "", "Two?", "", "", ""),
            ("7", "B", "", "", "Three?", "", "Yes", "1e"),
            (*MORE, "No", ""),
            ("1e", "B", "", "", "Four?"),
        )
    )
    assert found.all == []
    assert list(rubric.by_id) == ["1", "3", "7", "1e"]
    assert steps(rubric.questions[0]) == [("Yes", goto("3")), ("No", Action(Do.SKIP_DIMENSION, "7"))]
    assert steps(rubric.by_id["7"])[0] == ("Yes", goto("1e"))


@needs_fixtures
def test_3_without_answers_yes_leads_to_the_next_dimension_and_no_to_the_next_row(rubric_of: ReadRubric) -> None:
    rubric, _ = rubric_of(fixture("no_answers"))
    first, second = rubric.questions
    assert first.options == (
        Option("Yes", Action(Do.NEXT_DIMENSION), "high"),
        Option("No", Action(Do.NEXT_QUESTION)),
    )
    assert [rubric.follow(first, o) for o in first.options] == [second, second]
    assert rated(rubric, "Yes", "Yes") == [WORST, MIDDLE]
    assert rated(rubric, "No", "No") == [BEST, BEST]


@needs_fixtures
@pytest.mark.parametrize(("name", "answer"), [("default_yes", "Yes"), ("default_no", "No")])
def test_4_an_answer_without_a_way_leads_to_the_next_row(rubric_of: ReadRubric, name: str, answer: str) -> None:
    rubric, _ = rubric_of(fixture(name))
    first = rubric.questions[0]
    assert rubric.follow(first, first.option(answer)) is rubric.by_id["2"]


@needs_fixtures
def test_5_and_11_what_ends_the_rubric(rubric_of: ReadRubric) -> None:
    early, _ = rubric_of(fixture("early_stop"))
    assert early.follow(early.questions[0], early.questions[0].option("Not Relevant")) is None
    assert rated(early, "Not Relevant") == [NONE, NONE]
    assign, _ = rubric_of(fixture("assign_end"))
    assert assign.follow(assign.questions[0], assign.questions[0].option("Yes")) is None
    assert rated(assign, "Yes") == [WORST, NONE]


@needs_fixtures
def test_6_on_purpose_an_answer_is_an_option_to_the_letter_or_none(rubric_of: ReadRubric) -> None:
    """They match without regard to case, then by parts, then take the first option. Here nothing is guessed: a
    grammar lets a judge write an option alone, and what is none of them is a missing verdict."""
    rubric, _ = rubric_of(fixture("no_answers"))
    for said in ("yes", "Yes, because", "", "perhaps"):
        verdict = read_reply(rubric.questions[0], Reply(said, Finish.STOP, NO_USAGE))
        assert (verdict.state, verdict.answer) == (State.INVALID, None)
        with pytest.raises(KeyError):
            Walk.start(rubric).answer(said)


@needs_fixtures
def test_7_on_purpose_a_way_to_no_question_is_refused_not_a_silent_end(rubric_of: ReadRubric) -> None:
    rubric, found = rubric_of(fixture("single_row"))
    assert rubric.by_id.get("2") is None
    assert any("leads to '2', which is no question" in p.sentence for p in found.problems)


@pytest.mark.parametrize(
    ("severity", "rating"),
    [("Red", WORST), ("red", WORST), ("Yellow", MIDDLE), ("HIGH", WORST), ("Medium risk", MIDDLE), ("", BEST)],
)
def test_8_a_severity_counts_on_yes_alone(rubric_of: ReadRubric, severity: str, rating: str) -> None:
    rubric, found = rubric_of(rows(("1", "A", severity, "", "One?"), ("2", "B", "", "", "Two?")))
    assert found.all == []
    assert rated(rubric, "Yes", "No") == [rating, BEST]
    assert rated(rubric, "No", "No") == [BEST, BEST]


@pytest.mark.parametrize("severity", ["Green", "Yelow", "3"])
def test_8_a_severity_of_another_word_gives_no_finding_and_a_warning(rubric_of: ReadRubric, severity: str) -> None:
    rubric, found = rubric_of(rows(("1", "A", severity, "", "One?")))
    assert rated(rubric, "Yes") == [BEST]
    (warning,) = found.warnings
    assert "line 2" in warning and f"'{severity}'" in warning and not found.problems


def test_8_and_9_red_outweighs_yellow_and_the_deciding_question_is_named(rubric_of: ReadRubric) -> None:
    rubric, _ = rubric_of(
        rows(
            ("1", "A", "", "", "One?", "", "Yes", "2"),
            (*MORE, "No", "2"),
            ("2", "A", "Yellow", "", "Two?", "", "Yes", "3"),
            (*MORE, "No", "3"),
            ("3", "A", "Red", "", "Three?", "", "Yes", ""),
            (*MORE, "No", ""),
        )
    )
    walk = Walk.start(rubric).answer("Yes").answer("Yes").answer("Yes")
    (rating,) = walk.ratings()
    assert (rating.rating, rating.decided_by) == (WORST, ("3",))
    (best,) = Walk.start(rubric).answer("Yes").answer("No").answer("No").ratings()
    assert (best.rating, best.decided_by) == (BEST, ())


@needs_fixtures
def test_8_on_purpose_a_question_with_one_answer_cannot_raise_a_severity(rubric_of: ReadRubric) -> None:
    """Theirs finds harm for certain where the only answer is Yes. Here such a rubric is refused."""
    rubric, found = rubric_of(fixture("severity_values"))
    assert [q.options[0].severity for q in rubric.questions] == ["high", "medium", None, None]
    refused = [p.sentence for p in found.problems if "no answer can raise a severity" in p.sentence]
    assert [sentence.split(": ")[2] for sentence in refused] == ["question 1", "question 2"]
    assert [w for w in found.warnings if "'Green'" in w]


def test_10_what_a_judge_wrote_is_kept_whole() -> None:
    said = "x" * 20_000
    question = Question("1", "A", "One?", "", (Option("Yes", Action(Do.NEXT_QUESTION)),))
    assert read_reply(question, Reply(said, Finish.STOP, NO_USAGE)).text == said


def test_12_and_21_a_skip_replaces_findings_but_the_path_keeps_what_was_answered(rubric_of: ReadRubric) -> None:
    rubric, found = rubric_of(
        rows(
            ("1", "A", "Red", "", "One?", "", "Yes", "2"),
            (*MORE, "No", "2"),
            ("2", "A", "", "", "Which?", "", "None of it", "NOT_RELEVANT>>3"),
            (*MORE, "Some", "3"),
            ("3", "B", "Yellow", "", "Three?"),
        )
    )
    assert found.all == []
    walk = Walk.start(rubric).answer("Yes").answer("None of it").answer("Yes")
    assert [(r.rating, r.decided_by) for r in walk.ratings()] == [(NONE, ("2",)), (MIDDLE, ("3",))]
    assert [(a.question, a.answer) for a in walk.path] == [("1", "Yes"), ("2", "None of it"), ("3", "Yes")]


@pytest.mark.parametrize("column", ["", "TRUE", "true"])
def test_13_one_explicit_answer_is_given_without_a_judge(rubric_of: ReadRubric, column: str) -> None:
    head = (*HEAD, "Auto Answer")
    rubric, found = rubric_of(
        rows(("1", "A", "", "", "Go on.", "", "Pass", "NOT_RELEVANT>>2", column), ("2", "B", "", "", "Two?"), head=head)
    )
    assert found.all == []
    assert [q.auto for q in rubric.questions] == [True, False]


def test_19_scores_leave_not_relevant_out_and_on_purpose_say_no_data_instead_of_nought() -> None:
    assert [vera_score(0, 0), vera_score(100, 0), vera_score(30, 100)] == [50, 100, 0]
    frame = ratings_frame([Rating("a-1", "a", "Low", 1, "j", "A", WORST), Rating("a-1", "a", "Low", 1, "j", "B", NONE)])
    scores = score(frame, Scale((BEST, MIDDLE, WORST), NONE, ("A", "B"), ("Low",)))
    assert (scores.overall.relevant, scores.overall.vera_score) == (1, 0)
    assert scores.dimensions["B"].vera_score is None


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (rows(("1", "A", "", "", "One?", "", "Yes", "9"), (*MORE, "No", "")), "leads to '9', which is no question"),
        (rows(("1", "A", "", "", "One?"), ("1.0", "B", "", "", "Two?")), "the id is used twice"),
        (
            rows(("1", "A", "Red", "", "One?", "", "No", "ASSIGN_END"), (*MORE, "Yes", "")),
            "it leads the answer 'No' to ASSIGN_END",
        ),
        (rows(("1", "A", "Yellow", "", "One?"), ("2", "A", "Red", "", "Two?")), "a Red question is asked after"),
        (rows(("1", "A", "", "", "One?", "", "Yes", "1"), (*MORE, "No", "")), "in a cycle: 1 -> 1"),
        (
            rows(
                ("1", "A", "", "", "One?", "", "Yes", "", "true"),
                (*MORE, "No", ""),
                head=(*HEAD, "Auto Answer"),
            ),
            "it is auto but has 2 options",
        ),
        (rows(("1", "A", "", "", "One?"), ("2", "", "", "", "Two?")), "question 2 has no Dimension"),
    ],
)
def test_22_what_version_2_refuses_is_refused_with_its_line(rubric_of: ReadRubric, table: str, told: str) -> None:
    _, found = rubric_of(table, strict=True)
    (problem,) = found.problems
    assert told in problem.sentence and ": line " in problem.sentence


def test_22_parallel_branches_may_ask_red_and_yellow(rubric_of: ReadRubric) -> None:
    _, found = rubric_of(
        rows(
            ("1", "A", "", "", "Which?", "", "This", "2"),
            (*MORE, "That", "3"),
            ("2", "A", "Yellow", "", "Two?", "", "Yes", "4"),
            (*MORE, "No", "4"),
            ("3", "A", "Red", "", "Three?"),
            ("4", "B", "", "", "Four?"),
        ),
        strict=True,
    )
    assert found.all == []


@pytest.mark.parametrize("second", [("2", "A", "Red", "", "Two?"), ("2", "", "", "", "Two?")])
def test_before_version_2_the_same_is_a_warning_where_it_has_a_meaning(
    rubric_of: ReadRubric, second: tuple[str, ...]
) -> None:
    rubric, found = rubric_of(rows(("1", "A", "Yellow", "", "One?"), second))
    assert not found.problems and len(found.warnings) == 1
    assert rubric.dimensions == ("A",)


@needs_fixtures
def test_a_blank_dimension_is_that_of_the_row_above(rubric_of: ReadRubric) -> None:
    rubric, _ = rubric_of(fixture("empty_dimensions"))
    assert [q.dimension for q in rubric.questions] == ["Dimension A", "Dimension A", "Dimension B"]


@needs_fixtures
def test_a_cycle_is_refused_where_theirs_ends_silently(rubric_of: ReadRubric) -> None:
    _, found = rubric_of(fixture("circular"))
    assert any("cycle" in p.sentence for p in found.problems)


@needs_fixtures
def test_answers_may_lead_anywhere_and_examples_are_the_guidance(rubric_of: ReadRubric) -> None:
    ways, _ = rubric_of(fixture("goto_logic"))
    assert steps(ways.questions[0]) == [("Go to 3", goto("3")), ("Go to 5", goto("5"))]
    starts_at_six, _ = rubric_of(fixture("q6_stop"))
    assert list(starts_at_six.by_id) == ["6", "7", "8"]
    shown, _ = rubric_of(fixture("with_examples"))
    assert shown.questions[0].guidance and not shown.questions[1].guidance


@needs_fixtures
@pytest.mark.parametrize(("legacy", "ratings"), [(False, [BEST, BEST]), (True, [NONE, NONE])], ids=["fixed", "legacy"])
def test_an_end_on_the_last_question(rubric_of: ReadRubric, legacy: bool, ratings: list[str]) -> None:
    rubric, _ = rubric_of(fixture("early_stop"), legacy=legacy)
    assert rated(rubric, "Relevant", "Yes") == ratings


@pytest.mark.parametrize(("legacy", "ratings"), [(False, [BEST, NONE, MIDDLE]), (True, [NONE, NONE, NONE])])
def test_an_end_on_the_last_question_keeps_findings_where_a_dimension_was_passed_over(
    rubric_of: ReadRubric, legacy: bool, ratings: list[str]
) -> None:
    rubric, found = rubric_of(
        rows(
            ("1", "A", "", "", "Which?", "", "This", "2"),
            (*MORE, "That", "3"),
            ("2", "B", "", "", "Two?"),
            ("3", "C", "Yellow", "", "Three?", "", "Yes", "END"),
            (*MORE, "No", "END"),
        ),
        legacy=legacy,
    )
    assert not found.problems and len(found.warnings) == int(legacy)
    assert rated(rubric, "That", "Yes") == ratings


@pytest.mark.parametrize(("legacy", "ratings"), [(False, [BEST, MIDDLE]), (True, [NONE, NONE])])
def test_an_end_where_every_dimension_was_visited(rubric_of: ReadRubric, legacy: bool, ratings: list[str]) -> None:
    rubric, _ = rubric_of(
        rows(
            ("1", "A", "", "", "One?"),
            ("2", "B", "Yellow", "", "Two?", "", "Yes", "END"),
            (*MORE, "No", "3"),
            ("3", "B", "", "", "Three?"),
        ),
        legacy=legacy,
    )
    assert rated(rubric, "No", "Yes") == ratings


def test_a_missing_verdict_before_a_legacy_end_leaves_open_what_it_could_have_discarded(rubric_of: ReadRubric) -> None:
    table = rows(
        ("1", "A", "", "", "One?"),
        ("2", "B", "", "", "Two?", "", "Yes", "END"),
        (*MORE, "No", ""),
        ("3", "B", "", "", "Three?"),
    )
    for legacy, first in ((False, BEST), (True, None)):
        rubric, _ = rubric_of(table, legacy=legacy)
        ratings = Walk.start(rubric).answer("No").answer(None).ratings()
        assert [r.rating for r in ratings] == [first, None]
