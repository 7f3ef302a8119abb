"""Expected and extreme walks, against walks that are walked."""

from __future__ import annotations

import random

import pytest

from vera_local.bundle import Walk, load_bundle
from vera_local.bundle.paths import any_path, extreme, visits
from vera_local.bundle.rubric import Option, Question


def even(question: Question, option: Option) -> float:
    return 1 / len(question.options)


def one(question: Question, option: Option) -> float:
    return 1.0


@pytest.mark.parametrize("name", ["suicide_risk", "psychosis"])
def test_no_walk_is_shorter_or_longer_than_the_extremes(name: str) -> None:
    rubric, draw = load_bundle(name).rubric, random.Random(1)
    least, most = extreme(rubric, one, min), extreme(rubric, one, max)
    lengths = set()
    for _ in range(500):
        walk = Walk.start(rubric)
        while walk.question is not None:
            walk = walk.answer(draw.choice(walk.question.options).answer)
        lengths.add(len(walk.path))
    assert least <= min(lengths)
    assert max(lengths) <= most
    assert least == min(lengths), "500 random walks find the shortest"


def test_every_question_of_a_rubric_without_branches_is_asked_once() -> None:
    rubric = load_bundle("psychosis").rubric
    assert set(visits(rubric, even).values()) == {1.0}
    assert extreme(rubric, one, min) == extreme(rubric, one, max) == len(rubric.questions)


def test_visits_are_what_random_walks_come_to() -> None:
    rubric, draw = load_bundle("suicide_risk").rubric, random.Random(2)
    counts = dict.fromkeys(rubric.by_id, 0)
    for _ in range(4000):
        walk = Walk.start(rubric)
        while walk.question is not None:
            walk = walk.answer(draw.choice(walk.question.options).answer)
        for answered in walk.path:
            counts[answered.question] += 1
    for question, expected in visits(rubric, even).items():
        assert counts[question] / 4000 == pytest.approx(expected, abs=0.04), question


def test_measured_shares_give_the_measured_walks_exactly() -> None:
    rubric, draw = load_bundle("suicide_risk").rubric, random.Random(3)
    given: dict[tuple[str, str], int] = {}
    for _ in range(7):
        walk = Walk.start(rubric)
        while (question := walk.question) is not None:
            answer = draw.choice(question.options).answer
            given[question.id, answer] = given.get((question.id, answer), 0) + 1
            walk = walk.answer(answer)

    def share(question: Question, option: Option) -> float:
        asked = sum(n for (q, _), n in given.items() if q == question.id)
        return given.get((question.id, option.answer), 0) / asked if asked else 0.0

    for name, expected in visits(rubric, share).items():
        asked = sum(n for (q, _), n in given.items() if q == name)
        assert 7 * expected == pytest.approx(asked), name


def test_all_paths_can_be_equally_likely() -> None:
    rubric = load_bundle("suicide_risk").rubric
    share = any_path(rubric)
    for asked in rubric.questions:
        assert sum(share(asked, option) for option in asked.options) == pytest.approx(1)
    probabilities = set()
    draw = random.Random(4)
    for _ in range(50):
        walk, probability = Walk.start(rubric), 1.0
        while (question := walk.question) is not None:
            option = draw.choice(question.options)
            probability *= share(question, option)
            walk = walk.answer(option.answer)
        probabilities.add(round(1 / probability))
    assert len(probabilities) == 1, "however long a path is"
