"""The numbers of a card, counted by hand on the small self-test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.selftest.small import RUBRIC, SUITE
from vera_local.judge import Mode, State, Verdict
from vera_local.judge.verdict import Confidence
from vera_local.selftest.askings import Asking, Variant, sittings
from vera_local.selftest.card import Share
from vera_local.selftest.marks import Answered, marks

Answer = Callable[[Asking], str | None]


def answered(answer: Answer, repeats: int = 2) -> list[Answered]:
    askings = [a for s in sittings(RUBRIC, SUITE, repeats) for a in s.askings]
    return [Answered(asking, _verdict(asking, answer(asking))) for asking in askings]


def _verdict(asking: Asking, answer: str | None) -> Verdict:
    state = State.INVALID if answer is None else State.ANSWERED
    return Verdict(asking.question.id, state, answer, Mode.DIRECT)


def numbers(answer: Answer, repeats: int = 2) -> dict[str, Any]:
    return marks(answered(answer, repeats))


def share(count: int, n: int) -> Share:
    return Share(n=n, count=count, share=count / n if n else None)


def perfect(asking: Asking) -> str:
    return asking.right


def constant(asking: Asking) -> str:
    """The best answer to each question, whatever the transcript."""
    return {"1": "Yes", "2": "No", "3": "Low"}[asking.question.id]


def obedient(asking: Asking) -> str:
    return asking.wish or asking.right


def test_a_perfect_judge() -> None:
    its = numbers(perfect)
    assert its["askings"] == 36
    assert its["missing"] == {}
    assert (its["overall"].right, its["overall"].n, its["overall"].accuracy) == (8, 8, 1.0)
    assert its["overall"].baseline == 5 / 8, "1: Yes two times of three, 2: No both times, 3: one of three"
    assert {d: (a.right, a.n, a.baseline) for d, a in its["dimensions"].items()} == {
        "First": (5, 5, 4 / 5), "Second": (3, 3, 1 / 3),
    }  # fmt: skip
    assert its["kinds"] == {
        "pass": share(3, 3), "fail": share(2, 2), "control": share(1, 1), "adversarial": share(2, 2),
    }  # fmt: skip
    assert not its["below_baseline"]
    assert its["attacked"] == share(0, 8)
    assert its["attacks"] == {"order": share(0, 4), "praise": share(0, 4)}
    assert its["reversed"] == share(0, 8)
    assert its["master_keys"] == {":": share(2, 2), "Solution": share(2, 2)}
    assert its["repeated"] == share(8, 8)


def test_a_constant_judge_equals_the_baseline_and_is_below_it() -> None:
    its = numbers(constant)
    assert its["overall"].accuracy == its["overall"].baseline == 5 / 8
    assert its["below_baseline"]
    assert {d: a.accuracy for d, a in its["dimensions"].items()} == {"First": 4 / 5, "Second": 1 / 3}
    assert all(a.accuracy == a.baseline for a in its["dimensions"].values())


def test_one_more_right_answer_is_above_the_baseline() -> None:
    assert not numbers(lambda a: a.right if a.case.id == "tricky" else constant(a))["below_baseline"]


def test_the_interval_of_an_accuracy_is_wilsons() -> None:
    overall = numbers(lambda a: "Yes" if a.case.id == "fine" and a.question.id in "12" else a.right)["overall"]
    assert overall.right == 6
    # (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n) with p = 6/8, z = 1.959964
    assert (overall.low, overall.high) == pytest.approx((0.40928, 0.92852), abs=1e-4)


def test_an_obedient_judge_is_turned_by_every_attack_and_else_right() -> None:
    its = numbers(obedient)
    assert its["overall"].accuracy == 1.0
    assert its["attacked"] == share(8, 8)
    assert its["attacks"] == {"order": share(4, 4), "praise": share(4, 4)}


def test_an_attack_turns_only_what_was_right_and_only_to_its_wish() -> None:
    def judge(asking: Asking) -> str | None:
        if asking.variant is not Variant.ATTACK:
            return "Yes" if asking.question.id == "2" else asking.right
        if asking.detail == "praise":
            return None
        return "Low" if asking.question.id == "3" else asking.wish

    its = numbers(judge)
    # Question 2 was wrong before; question 3 went elsewhere than the attacker wished; no answer is no obedience.
    assert its["attacks"] == {"order": share(2, 3), "praise": share(0, 3)}
    assert its["attacked"] == share(2, 6)
    assert its["missing"] == {"invalid": 4}


def test_a_judge_that_takes_the_first_option_changes_with_the_order() -> None:
    its = numbers(lambda asking: asking.question.options[0].answer)
    assert its["reversed"] == share(8, 8)
    assert its["overall"].right == 3, "Yes twice, None once"


def test_a_change_needs_two_answers() -> None:
    its = numbers(lambda a: None if a.variant is Variant.REVERSED and a.question.id == "3" else perfect(a))
    assert its["reversed"] == share(0, 5)


def test_missing_answers_are_wrong_and_counted_by_state() -> None:
    its = numbers(lambda a: None)
    assert its["missing"] == {"invalid": 36}
    assert its["overall"].accuracy == 0.0
    assert its["below_baseline"]
    assert its["attacked"] == share(0, 0)
    assert its["reversed"] == share(0, 0)
    assert its["repeated"] == share(0, 8), "to say nothing twice is no answer"


def test_consistent_is_what_is_the_same_in_all_repeats() -> None:
    def judge(asking: Asking) -> str:
        return "High" if asking.detail == "3" and asking.case.id in ("fine", "calm") else asking.right

    # The third answer is another one for the three questions about fine and the one about calm.
    assert numbers(judge, repeats=3)["repeated"] == share(4, 8)
    assert numbers(judge, repeats=1)["repeated"] == share(0, 0)


def test_evidence_counts_where_it_was_asked_for_and_bears_the_answer_out() -> None:
    def with_evidence(*named: tuple[int, ...] | None) -> Share:
        turns = dict(zip(["harmful", "calm"], named, strict=True))
        found = [
            replace(a, verdict=replace(a.verdict, evidence=turns.get(a.asking.case.id, (1, 2))))
            for a in answered(perfect)
        ]
        counted: Share = marks(found)["evidence"]
        return counted

    # Two askings have evidence to be found: harmful 1 (turn 2) and calm 3 (turn 1).
    assert with_evidence((2,), (1, 2)) == share(2, 2)
    assert with_evidence((1,), (1,)) == share(1, 2)
    assert with_evidence((), (1,)) == share(1, 2)
    assert with_evidence(None, (1,)) == share(1, 1)
    assert with_evidence(None, None) == share(0, 0)


def test_sureness_is_read_from_plain_answers() -> None:
    def confident(answer: Answered, yes: float) -> Answered:
        options = {answer.verdict.answer or "": yes, "other": 0.9 - yes}
        return replace(answer, verdict=replace(answer.verdict, confidence=Confidence(options)))

    answers = [confident(a, 0.5 if a.asking.case.id == "calm" else 0.8) for a in answered(constant)]
    sure = marks(answers)["sureness"]
    assert sure.mass == pytest.approx(0.9)
    assert sure.uncertain == share(1, 8), "calm 3: 0.5 against 0.4 is a near tie"
    assert sure.right_if_uncertain == share(0, 1)
    assert sure.right_if_certain == share(5, 7)


def test_without_probabilities_nothing_is_said_of_sureness() -> None:
    sure = numbers(perfect)["sureness"]
    assert sure.mass is None
    assert sure.uncertain == share(0, 0)
