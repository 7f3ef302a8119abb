"""How often answers or ratings of the same thing are the same: plain shares, without chance taken out. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

Thing = TypeVar("Thing", bound=Hashable)
"""What answers or ratings are about."""


class Share(NamedTuple):
    """`alike` of `total`."""

    alike: int
    total: int


def all_alike(members: Sequence[Mapping[Thing, str | None]]) -> Share:
    """Of the things that every member was asked about, those to which all gave one same answer.

    Each member maps a thing to its answer; None is no answer and like no other. ValueError without a member.
    """
    if not members:
        raise ValueError("there is nobody to compare")
    asked = set.intersection(*(set(member) for member in members))
    alike = sum(len(answers := {member[thing] for member in members}) == 1 and None not in answers for thing in asked)
    return Share(alike, len(asked))


def pairwise(raters: Mapping[str, Mapping[Thing, str | None]]) -> dict[tuple[str, str], Share]:
    """For each pair of raters, of the things that both rated (None: did not), those that both rated the same."""
    rated = {name: {thing: r for thing, r in its.items() if r is not None} for name, its in raters.items()}
    return {(a, b): all_alike([rated[a], rated[b]]) for a, b in combinations(rated, 2)}
