"""What ratings may say. Knows no rating that was given."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """`ratings` best first; `dimensions` and `groups` in the order to report them.

    `not_relevant` None: no rating says so.
    """

    ratings: tuple[str, ...]
    not_relevant: str | None
    dimensions: tuple[str, ...]
    groups: tuple[str, ...]

    @property
    def best(self) -> str:
        """The best rating."""
        return self.ratings[0]

    @property
    def worst(self) -> str:
        """The worst rating."""
        return self.ratings[-1]

    @property
    def has_vera_score(self) -> bool:
        """Whether the published score is defined: its formula is for a best, a middle and a worst rating.

        A rubric of exactly three ratings is taken to be of that kind, whatever it calls them.
        """
        return len(self.ratings) == 3
