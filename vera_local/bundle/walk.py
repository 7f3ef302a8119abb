"""The walk through a rubric, one answer at a time. Knows no judge: answers are given to it.

A missing verdict is never guessed. The walk goes on at the nearest question that every path from there asks, and ends
where there is none; each dimension that the missing answer could have changed is Unrated.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vera_local.bundle.graph import Graph
from vera_local.bundle.rating import Answered, DimensionRating, rate
from vera_local.bundle.rubric import Question, Rubric

__all__ = ["Answered", "DimensionRating", "Walk"]


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk so far: the question to ask now (None at the end) and what was asked before, in order."""

    question: Question | None
    path: tuple[Answered, ...]
    _graph: Graph = field(repr=False)

    @staticmethod
    def start(rubric: Rubric) -> Walk:
        """A walk at the first question of a validated rubric."""
        return Walk(rubric.questions[0], (), Graph.of(rubric))

    @property
    def reachable(self) -> frozenset[str]:
        """The ids of the questions that this walk may still ask, the current one among them."""
        return frozenset() if self.question is None else self._graph.reach[self.question.id]

    def answer(self, text: str | None) -> Walk:
        """The walk after the current question got the answer `text`, None for a missing verdict.

        KeyError where `text` is not exactly one of the question's options, ValueError where the walk has ended.
        """
        if self.question is None:
            raise ValueError("the walk has ended: there is no question to answer")
        following = self._after(self.question, text)
        return Walk(following, (*self.path, Answered(self.question.id, text)), self._graph)

    def _after(self, question: Question, text: str | None) -> Question | None:
        rubric = self._graph.rubric
        if text is not None:
            return rubric.follow(question, question.option(text))
        meeting = self._graph.meeting(question.id)
        return None if meeting is None else rubric.by_id[meeting]

    def ratings(self) -> tuple[DimensionRating, ...]:
        """One rating per dimension in rubric order; ValueError where the walk has not ended."""
        if self.question is not None:
            raise ValueError(f"the walk has not ended: question {self.question.id} is to be answered")
        return rate(self._graph, self.path)
