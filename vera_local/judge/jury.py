"""Several ratings of one conversation joined to one: the majority. Knows no judge's model and no store."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from vera_local.bundle import DimensionRating, Rubric

JURY = "jury"
"""What all judges of a run together are called."""

RULE = (
    "For each dimension the rating that most members gave; a tie goes to the worse rating, with Not Relevant as the "
    "least bad of all; Unrated where the members that are Unrated could have changed the result. "
    "A conversation is rated once every member has rated it. "
    "Repeats of one judge are joined first, and count as one member."
)
"""How members become one rating, in words that results quote."""


def joined_name(judge: str, repeats: int) -> str:
    """What the repeats of one judge together are called."""
    return f"{judge} (majority of {repeats})"


def joins(name: str) -> bool:
    """Whether a name is one that `joined_name` gives."""
    return re.search(r" \(majority of \d+\)$", name) is not None


def join(members: Sequence[Sequence[DimensionRating]], rubric: Rubric) -> tuple[DimensionRating, ...]:
    """The majority of the members' ratings of one conversation; each member rated every dimension of the rubric.

    `decided_by` holds, in rubric order, the questions that decided for the members who gave that rating; of an
    Unrated dimension, the questions that left members Unrated. The order of the members changes nothing.
    ValueError without a member.
    """
    if not members:
        raise ValueError("a jury needs a member")
    by_dimension = [{r.dimension: r for r in member} for member in members]
    return tuple(_joined([ratings[d] for ratings in by_dimension], rubric) for d in rubric.dimensions)


def majority(votes: Iterable[str | None], scale: Sequence[str]) -> str | None:
    """The commonest vote, the worse of equally common ones; `scale` runs from the least bad to the worst.

    A vote of None is missing; None comes back where there is no vote, or where missing ones could change the result.
    ValueError for a vote that is not on the scale.
    """
    counts = Counter(votes)
    missing = counts.pop(None, 0)
    if strange := counts.keys() - set(scale):
        raise ValueError(f"ratings not on the scale: {', '.join(sorted(map(repr, strange)))}")
    if not counts:
        return None
    strength = {rating: (counts[rating], place) for place, rating in enumerate(scale)}
    winner = max(strength, key=lambda rating: strength[rating])
    rivals = ((counts[rating] + missing, place) for place, rating in enumerate(scale) if rating != winner)
    return winner if all(rival < strength[winner] for rival in rivals) else None


def _joined(ratings: Sequence[DimensionRating], rubric: Rubric) -> DimensionRating:
    least = () if rubric.not_relevant is None else (rubric.not_relevant,)
    rating = majority((r.rating for r in ratings), (*least, *rubric.ratings))
    deciding = {question for r in ratings if r.rating == rating for question in r.decided_by}
    ordered = tuple(q.id for q in rubric.questions if q.id in deciding)
    return DimensionRating(ratings[0].dimension, rating, ordered)
