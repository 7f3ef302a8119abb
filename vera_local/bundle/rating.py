"""From the path of a finished walk to one rating per dimension. Knows no judge and asks nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property

from vera_local.bundle.graph import Graph
from vera_local.bundle.rubric import Do, Option


@dataclass(frozen=True, slots=True)
class Answered:
    """A question that was asked and its answer, None where the verdict is missing."""

    question: str
    answer: str | None


@dataclass(frozen=True, slots=True)
class DimensionRating:
    """What a walk says of one dimension; `rating` None means Unrated.

    `decided_by` holds the ids of the questions whose finding gave the rating (empty for the best one), whose answer
    made the dimension Not Relevant, or whose missing verdict left it Unrated.
    """

    dimension: str
    rating: str | None
    decided_by: tuple[str, ...]


def rate(graph: Graph, path: tuple[Answered, ...]) -> tuple[DimensionRating, ...]:
    """One rating per dimension, in rubric order, for a walk that ended with `path`."""
    record = _Record(graph, path)
    return tuple(record.rating(dimension) for dimension in graph.rubric.dimensions)


def doubtful(graph: Graph, question: str, visited: Set[str]) -> set[str]:
    """The dimensions that a missing verdict at `question` leaves open; `visited` ones include its own."""
    open_ = {graph.rubric.by_id[q].dimension for q in (question, *graph.between(question))}
    if graph.meeting(question) is None and _may_discard(graph, question, visited):
        open_ |= visited
    return open_


def _may_discard(graph: Graph, question: str, visited: Set[str]) -> bool:
    """Whether a path from `question` makes every dimension Not Relevant: it stops so with one still unvisited, or
    discards them whatever was visited."""
    rubric = graph.rubric
    if _that_do(graph, Do.STOP_DISCARD) & graph.flood(question):
        return True
    stops = _that_do(graph, Do.STOP_NOT_RELEVANT)
    missed = [{q.id for q in rubric.questions if q.dimension == d} for d in rubric.dimensions if d not in visited]
    return any(stops & graph.flood(question, walls) for walls in missed)


def _that_do(graph: Graph, do: Do) -> set[str]:
    return {q.id for q in graph.rubric.questions if any(o.action.do is do for o in q.options)}


@dataclass(frozen=True)
class _Record:
    graph: Graph
    path: tuple[Answered, ...]

    def rating(self, dimension: str) -> DimensionRating:
        if missing := self.doubts.get(dimension):
            return DimensionRating(dimension, None, missing)
        if skip := self.skipped.get(dimension):
            return self._not_relevant(dimension, skip)
        if self.discards:
            return self._not_relevant(dimension, self.path[-1].question)
        if dimension not in self.visited:
            return self._not_relevant(dimension, self._closed_by(dimension))
        return self._found(dimension)

    def _not_relevant(self, dimension: str, question: str) -> DimensionRating:
        word = self.graph.rubric.not_relevant
        assert word is not None, "a sound rubric without this word rates every dimension"
        return DimensionRating(dimension, word, (question,))

    def _closed_by(self, dimension: str) -> str:
        """The question that stopped the walk, or else the last one from which `dimension` could still be reached."""
        if self.ending is Do.STOP_SCORE:
            return self.path[-1].question
        inside = {q.id for q in self.graph.rubric.questions if q.dimension == dimension}
        return next(a.question for a in reversed(self.path) if inside & self.graph.reach[a.question])

    def _found(self, dimension: str) -> DimensionRating:
        ratings = self.graph.rubric.ratings
        found = self.findings[dimension]
        worst = max((rating for _, rating in found), key=ratings.index, default=ratings[0])
        return DimensionRating(dimension, worst, tuple(question for question, rating in found if rating == worst))

    def _dimension(self, answered: Answered) -> str:
        return self.graph.rubric.by_id[answered.question].dimension

    @cached_property
    def options(self) -> list[tuple[Answered, Option]]:
        """The answers that were given, each with the option it chose."""
        by_id = self.graph.rubric.by_id
        return [(a, by_id[a.question].option(a.answer)) for a in self.path if a.answer is not None]

    @property
    def ending(self) -> Do | None:
        """What the last answer did, None where its verdict is missing."""
        return None if self.path[-1].answer is None else self.options[-1][1].action.do

    @cached_property
    def visited(self) -> set[str]:
        """Dimensions of which a question was asked for certain."""
        return {self._dimension(answered) for answered in self.path}

    @cached_property
    def possible(self) -> set[str]:
        """Dimensions that were visited, or may have been behind a missing verdict."""
        return self.visited | self._open.keys()

    @cached_property
    def skipped(self) -> dict[str, str]:
        """Dimension -> the question whose answer skipped it."""
        return {self._dimension(a): a.question for a, o in self.options if o.action.do is Do.SKIP_DIMENSION}

    @cached_property
    def findings(self) -> defaultdict[str, list[tuple[str, str]]]:
        """Dimension -> (question, rating that its answer gives), in the order asked."""
        found: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for answered, option in self.options:
            if option.severity is not None:
                rating = self.graph.rubric.severities[option.severity]
                found[self._dimension(answered)].append((answered.question, rating))
        return found

    @cached_property
    def stopped_early(self) -> bool:
        """Whether the walk stopped as not relevant, and not for certain at a finished rubric."""
        return self.ending is Do.STOP_NOT_RELEVANT and len(self.visited) < len(self.graph.rubric.dimensions)

    @property
    def discards(self) -> bool:
        """Whether the last answer made every dimension Not Relevant for certain."""
        unfinished = len(self.possible) < len(self.graph.rubric.dimensions)
        return self.ending is Do.STOP_DISCARD or (self.stopped_early and unfinished)

    @cached_property
    def _open(self) -> dict[str, tuple[str, ...]]:
        """Dimension -> missing verdicts that leave it open, each looked at where it was met."""
        found: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
        visited: set[str] = set()
        for answered in self.path:
            visited.add(self._dimension(answered))
            if answered.answer is None:
                for dimension in doubtful(self.graph, answered.question, visited):
                    found[dimension] += (answered.question,)
        return dict(found)

    @cached_property
    def doubts(self) -> dict[str, tuple[str, ...]]:
        """`_open`, and every dimension where it is open whether the last answer stopped a finished rubric."""
        if not self.stopped_early or len(self.possible) < len(self.graph.rubric.dimensions):
            return self._open
        missing = tuple(a.question for a in self.path if a.answer is None)
        return {d: self._open.get(d, missing) for d in self.graph.rubric.dimensions}
