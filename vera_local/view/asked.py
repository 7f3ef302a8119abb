"""What a reader asked of the list of conversations, as it stands in the address. Knows no run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from vera_local.errors import UserError

LONGEST = 200
"""Characters of what one can search for."""


@dataclass(frozen=True)
class Asked:
    """Empty: not asked for. `persona`: part of a persona's name or a conversation's id; `words`: said in a message.

    `shortest` and `longest` are numbers of turns, `dimension` the name of the one that has the `rating`, else any.
    """

    judge: str = ""
    persona: str = ""
    group: str = ""
    ending: str = ""
    dimension: str = ""
    rating: str = ""
    uncertain: str = ""
    shortest: str = ""
    longest: str = ""
    words: str = ""
    sort: str = "place"
    down: str = ""
    page: str = "1"

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Asked:
        """UserError for a number that is none, or a search that is too long."""
        known = {field.name for field in fields(cls)}
        asked = cls(**{key: value.strip() for key, value in parameters.items() if key in known and value.strip()})
        for key in ("shortest", "longest", "page"):
            value = getattr(asked, key)
            if value and not (value.isascii() and value.isdigit() and len(value) < 10):
                raise UserError(f"{key} is {value[:20]!r} in this address: write a whole number, or leave it out")
        if len(asked.words) > LONGEST:
            raise UserError(f"These are {len(asked.words)} characters to search for: take at most {LONGEST}")
        return asked

    def query(self, **changes: Any) -> str:
        """The same, but for `changes`, as the end of an address; empty where nothing is asked for."""
        changed = replace(self, **changes)
        given = {f.name: getattr(changed, f.name) for f in fields(self) if getattr(changed, f.name) != f.default}
        return f"?{urlencode(given)}" if given else ""

    @property
    def narrows(self) -> bool:
        """Whether it leaves any conversation out."""
        kept = replace(self, judge="", sort="place", down="", page="1", dimension="")
        return kept != Asked()
