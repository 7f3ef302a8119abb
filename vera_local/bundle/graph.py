"""Which questions of a rubric lead to which. Knows no ratings and no given answers."""

from __future__ import annotations

from collections.abc import Set
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from weakref import WeakValueDictionary

from vera_local.bundle.rubric import Rubric


class Graph:
    """The questions of one rubric as a directed graph of ids; None stands for the end of the walk.

    Needs unique ids and known targets; all but `successors`, `flood` and `cycle` need a graph without a cycle.
    """

    def __init__(self, rubric: Rubric) -> None:
        self.rubric = rubric
        self.successors: dict[str, tuple[str | None, ...]] = {
            q.id: tuple(after.id if (after := rubric.follow(q, option)) else None for option in q.options)
            for q in rubric.questions
        }

    @classmethod
    def of(cls, rubric: Rubric) -> Graph:
        """The graph of this very rubric object, shared by all walks that are alive."""
        graph = _GRAPHS.get(id(rubric))
        if graph is None:
            graph = _GRAPHS[id(rubric)] = cls(rubric)
        return graph

    def following(self, question: str) -> list[str]:
        """The questions that may be asked right after `question`."""
        return [q for q in self.successors[question] if q is not None]

    def flood(self, start: str, walls: Set[str] = frozenset()) -> set[str]:
        """`start` and every question that can be reached from it without asking one of `walls`."""
        found, waiting = {start}, [start]
        while waiting:
            new = set(self.following(waiting.pop())) - walls - found
            found |= new
            waiting += new
        return found

    def cycle(self) -> tuple[str, ...]:
        """The ids of one cycle, its first question in rubric order both first and last; empty where there is none."""
        try:
            TopologicalSorter({q: self.following(q) for q in self.successors}).prepare()
        except CycleError as error:
            ring: list[str] = error.args[1][:0:-1]
            first = min(range(len(ring)), key=lambda i: list(self.successors).index(ring[i]))
            return (*ring[first:], *ring[: first + 1])
        return ()

    @cached_property
    def _last_first(self) -> list[str]:
        """The ids in an order in which every question comes after all that can follow it."""
        return list(TopologicalSorter({q: self.following(q) for q in self.successors}).static_order())

    @cached_property
    def first_to_last(self) -> tuple[str, ...]:
        """The ids in an order in which every question comes before all that can follow it."""
        return tuple(reversed(self._last_first))

    @cached_property
    def reach(self) -> dict[str, frozenset[str]]:
        """For each question, itself and all that may be asked after it."""
        reach: dict[str, frozenset[str]] = {}
        for question in self._last_first:
            reach[question] = frozenset({question}).union(*(reach[q] for q in self.following(question)))
        return reach

    @cached_property
    def _ahead(self) -> dict[str, frozenset[str]]:
        """For each question, those that every path from it to an end still asks, itself not counted."""
        ahead: dict[str, frozenset[str]] = {}
        for question in self._last_first:
            branches = [ahead[q] | {q} if q is not None else frozenset[str]() for q in self.successors[question]]
            ahead[question] = frozenset.intersection(*branches)
        return ahead

    def meeting(self, question: str) -> str | None:
        """The nearest question that every path from `question` asks; None where there is none."""
        return max(self._ahead[question], key=lambda q: len(self._ahead[q]), default=None)

    def between(self, question: str) -> set[str]:
        """Every question that some path asks after `question` and before their meeting, or else before the end."""
        meeting = self.meeting(question)
        return self.flood(question, frozenset() if meeting is None else {meeting}) - {question}


_GRAPHS: WeakValueDictionary[int, Graph] = WeakValueDictionary()
"""By identity of the rubric; a graph keeps its rubric alive, so an identity here is never reused."""
