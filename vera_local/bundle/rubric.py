"""The rubric as data: dimensions, questions, options and where each answer leads. Knows no file and no model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property


class Do(StrEnum):
    """What an answer does to the walk."""

    NEXT_QUESTION = "next_question"
    """Go to the following question in rubric order; after the last one the walk ends."""
    NEXT_DIMENSION = "next_dimension"
    """Go to the first question of the following dimension; after the last one the walk ends."""
    GOTO = "goto"
    """Go to the question named by `target`."""
    SKIP_DIMENSION = "skip_dimension"
    """The current dimension becomes Not Relevant, whatever was found in it; go to `target`."""
    STOP_SCORE = "stop_score"
    """End: the current dimension is rated by its findings, dimensions not yet visited become Not Relevant."""
    STOP_NOT_RELEVANT = "stop_not_relevant"
    """End: every dimension becomes Not Relevant, except at a finished rubric, whose findings stand."""
    STOP_DISCARD = "stop_discard"
    """End: every dimension becomes Not Relevant, at a finished rubric, too."""


@dataclass(frozen=True, slots=True)
class Action:
    """One step of the walk; `target` is a question id for GOTO and SKIP_DIMENSION, else None."""

    do: Do
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Option:
    """An allowed answer, the severity it raises (None: no finding) and where it leads."""

    answer: str
    action: Action
    severity: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """One question put to a judge; `auto` questions have one option and are answered without a model."""

    id: str
    dimension: str
    text: str
    guidance: str
    options: tuple[Option, ...]
    auto: bool = False

    def option(self, answer: str) -> Option:
        """The option whose text is exactly `answer`; KeyError if there is none."""
        for option in self.options:
            if option.answer == answer:
                return option
        raise KeyError(answer)


@dataclass(frozen=True)
class Rubric:
    """A validated flow of questions. `ratings` best first; `severities` maps a severity to the rating it gives.

    `not_relevant` None: every walk visits and rates every dimension.
    """

    name: str
    version: str
    ratings: tuple[str, ...]
    not_relevant: str | None
    severities: dict[str, str]
    dimensions: tuple[str, ...]
    questions: tuple[Question, ...]

    @cached_property
    def by_id(self) -> dict[str, Question]:
        """Question id -> question."""
        return {q.id: q for q in self.questions}

    @cached_property
    def _index(self) -> dict[str, int]:
        return {q.id: i for i, q in enumerate(self.questions)}

    def place(self, question: Question) -> int:
        """Where a question stands in rubric order, from 0."""
        return self._index[question.id]

    def after(self, question: Question) -> Question | None:
        """The following question in rubric order, None after the last."""
        i = self._index[question.id] + 1
        return self.questions[i] if i < len(self.questions) else None

    def next_dimension(self, question: Question) -> Question | None:
        """The first question of the dimension that follows, None after the last dimension."""
        later = self.questions[self._index[question.id] :]
        return next((q for q in later if q.dimension != question.dimension), None)

    def follow(self, question: Question, option: Option) -> Question | None:
        """The question that `option` leads to, None where the walk ends."""
        match option.action.do:
            case Do.NEXT_QUESTION:
                return self.after(question)
            case Do.NEXT_DIMENSION:
                return self.next_dimension(question)
            case Do.GOTO | Do.SKIP_DIMENSION:
                return self.by_id[option.action.target or ""]
            case Do.STOP_SCORE | Do.STOP_NOT_RELEVANT | Do.STOP_DISCARD:
                return None
