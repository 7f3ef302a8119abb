"""The judges of a run and what they come to together. Knows no model: it reads what the store holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vera_local.bundle import DimensionRating, Rubric
from vera_local.judge.jury import JURY, RULE, join, joined_name
from vera_local.run.soundness import must_be_rated

Walk = tuple[DimensionRating, ...]
"""What a judge says of one conversation, dimension by dimension."""

Rated = dict[str, dict[str, Walk]]
"""Judge -> conversation -> its ratings; equal walks are one object, for there are far fewer than conversations."""


@dataclass(frozen=True)
class Bench:
    """Who judged a run. `repeats`: joined judge -> its repeats; `juries`: joined judge or jury -> its members.

    `ratings` holds what each judge and each of the joined ones said; joined ones rate the conversations that all
    their members rated.
    """

    ratings: Rated
    repeats: dict[str, tuple[str, ...]]
    juries: dict[str, tuple[str, ...]]

    @property
    def judges(self) -> tuple[str, ...]:
        """The judges, by name; in place of one that judged repeatedly the majority of its repeats."""
        repeated = {name for members in self.repeats.values() for name in members}
        return tuple(sorted(name for name in self.ratings if name not in repeated and name != JURY))

    def members(self, name: str) -> tuple[str, ...]:
        """The judges behind a name, each with a path of its own."""
        if name not in self.juries:
            return (name,)
        return tuple(judge for member in self.juries[name] for judge in self.members(member))


def bench(found: Iterable[tuple[str, str, DimensionRating]], judges: Mapping[str, Any], rubric: Rubric) -> Bench:
    """The bench of a run: (conversation, judge, rating) as the store gives them, and the manifest's `judges`.

    A judge takes part once it has rated a conversation. Foreign where a rating is not of this rubric.
    """
    ratings = _by_judge(found)
    for walk in {id(walk): walk for walks in ratings.values() for walk in walks.values()}.values():
        must_be_rated(((r.dimension, r.rating) for r in walk), rubric)
    repeats = {joined_name(judge, len(seats)): seats for judge, seats in _repeated(ratings, judges).items()}
    for name, seats in repeats.items():
        ratings[name] = _join([ratings[seat] for seat in seats], rubric)
    alone = Bench(ratings, repeats, dict(repeats))
    if len(alone.judges) < 2:
        return alone
    jury = {JURY: _join([ratings[name] for name in alone.judges], rubric)}
    return Bench(ratings | jury, repeats, repeats | {JURY: alone.judges})


def facts(judges: Bench) -> dict[str, dict[str, Any]]:
    """Who is behind each joined name and by which rule, for results to state."""
    return {name: {"members": list(members), "rule": RULE} for name, members in judges.juries.items()}


def _by_judge(found: Iterable[tuple[str, str, DimensionRating]]) -> Rated:
    lists: dict[str, dict[str, list[DimensionRating]]] = {}
    for conversation, judge, rating in found:
        lists.setdefault(judge, {}).setdefault(conversation, []).append(rating)
    known: dict[Walk, Walk] = {}
    return {
        judge: {id: known.setdefault(walk := tuple(its), walk) for id, its in walks.items()}
        for judge, walks in lists.items()
    }


def _repeated(ratings: Rated, judges: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Judge -> its seats, for those that judged more than once; runs of older versions knew no repeats."""
    seats: dict[str, list[str]] = {}
    for name in sorted(ratings, key=lambda name: judges.get(name, {}).get("repeat", 1)):
        seats.setdefault(judges.get(name, {}).get("judge", name), []).append(name)
    return {judge: tuple(names) for judge, names in seats.items() if len(names) > 1}


def _join(members: Sequence[Mapping[str, Walk]], rubric: Rubric) -> dict[str, Walk]:
    """The members' majority in each conversation that all of them rated."""
    first, *others = members
    joined: dict[tuple[Walk, ...], Walk] = {}
    found: dict[str, Walk] = {}
    for id in first:
        if all(id in other for other in others):
            walks = tuple(member[id] for member in members)
            found[id] = joined.get(walks) or joined.setdefault(walks, join(walks, rubric))
    return found
