"""Which colour and pattern a rating has. Knows no colour: the style sheet has one for each tone."""

from __future__ import annotations

from collections.abc import Sequence

MIDDLE = ("mid1", "mid2", "mid3")
NOT_RELEVANT, UNRATED = "apart", "open"


def tones(ratings: Sequence[str], not_relevant: str | None) -> dict[str, str]:
    """Rating -> tone: `best`, `worst`, what lies between, and `apart` for the word that is no rating."""
    last = len(ratings) - 1
    found = {rating: _tone(place, last) for place, rating in enumerate(ratings)}
    return found if not_relevant is None else {**found, not_relevant: NOT_RELEVANT}


def short_names(ratings: Sequence[str], not_relevant: str | None) -> dict[str, str]:
    """Rating -> its first word, or all of it where others have that word, too; of Not Relevant the initials."""
    firsts = [rating.split()[0] for rating in ratings]
    short = {r: first if firsts.count(first) == 1 else r for r, first in zip(ratings, firsts, strict=True)}
    if not_relevant is None:
        return short
    words = not_relevant.split()
    return {**short, not_relevant: "".join(word[0] for word in words) if len(words) > 1 else not_relevant}


def _tone(place: int, last: int) -> str:
    if place == 0:
        return "best"
    if place == last:
        return "worst"
    return MIDDLE[min(len(MIDDLE) - 1, 1 if last == 2 else (place - 1) * len(MIDDLE) // (last - 1))]
