"""What walks through a rubric come to before any is walked. Knows no judge and no conversation."""

from __future__ import annotations

from collections.abc import Callable

from vera_local.bundle.graph import Graph
from vera_local.bundle.rubric import Option, Question, Rubric

PerAnswer = Callable[[Question, Option], float]
"""A figure of every answer to every question."""


def visits(rubric: Rubric, share: PerAnswer) -> dict[str, float]:
    """Question -> how probable it is that a walk asks it, where each answer is given with its `share` of 1."""
    reached = dict.fromkeys(rubric.by_id, 0.0) | {rubric.questions[0].id: 1.0}
    for question in _in_order(rubric):
        for option in question.options:
            if (following := rubric.follow(question, option)) is not None:
                reached[following.id] += reached[question.id] * share(question, option)
    return reached


def extreme(rubric: Rubric, cost: PerAnswer, pick: Callable[[list[float]], float]) -> float:
    """What the least (`pick` is min) or the most (max) costly of all walks costs, the sum over its answers."""
    costs: dict[str, float] = {}
    for question in reversed(_in_order(rubric)):
        branches = []
        for option in question.options:
            following = rubric.follow(question, option)
            branches.append(cost(question, option) + (0.0 if following is None else costs[following.id]))
        costs[question.id] = pick(branches)
    return costs[rubric.questions[0].id]


def any_path(rubric: Rubric) -> PerAnswer:
    """The shares of answers with which all paths through the rubric are equally likely; so most walks are long ones."""
    ways: dict[str, int] = {}

    def behind(question: Question, option: Option) -> int:
        following = rubric.follow(question, option)
        return 1 if following is None else ways[following.id]

    for question in reversed(_in_order(rubric)):
        ways[question.id] = sum(behind(question, option) for option in question.options)
    return lambda question, option: behind(question, option) / ways[question.id]


def _in_order(rubric: Rubric) -> list[Question]:
    """Every question that a walk can ask, before all that can follow it."""
    graph = Graph.of(rubric)
    reach = graph.flood(rubric.questions[0].id)
    return [rubric.by_id[q] for q in sorted(reach, key=lambda q: -len(graph.reach[q]))]
