"""A number as a page shows it, with the place that scores.json has it at. Knows no score by name."""

from __future__ import annotations

from dataclasses import dataclass

NO_DATA = "no data"

Keys = tuple[str, ...]


@dataclass(frozen=True)
class Number:
    """`value` to the last digit, `text` as it is shown, `pointer` (RFC 6901) to it in scores.json."""

    value: str
    text: str
    pointer: str


def count(value: int, at: Keys) -> Number:
    """A count."""
    return Number(str(value), str(value), pointer(at))


def points(value: float | None, at: Keys) -> Number | None:
    """A score, or a percentage without its sign, to one decimal."""
    return None if value is None else Number(str(value), f"{value:.1f}", pointer(at))


def pointer(keys: Keys) -> str:
    """The JSON pointer of these keys."""
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)
