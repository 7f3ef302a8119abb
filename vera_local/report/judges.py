"""What several judges and their doubts come to, as lines for the terminal. Knows no judge and prints nothing itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vera_local.score.alike import Share


def jury_lines(juries: Mapping[str, tuple[str, ...]], waiting: Mapping[str, int], rule: str) -> list[str]:
    """Who is behind each joined name and by what rule; `waiting`: the conversations some member has yet to rate."""
    lines = [f"{name}: joined from {', '.join(members)}{_waiting(waiting[name])}." for name, members in juries.items()]
    return [*lines, f"Rule: {rule}"] if lines else []


def doubt_lines(uncertain: Mapping[str, int], folder: Path) -> list[str]:
    """How many answers a person should look at, and where they are."""
    if not uncertain:
        return []
    each = f" ({', '.join(f'{judge}: {count}' for judge, count in uncertain.items())})" if len(uncertain) > 1 else ""
    where = f"they are in verdicts.csv, column doubt, and in `vera-local show {folder} CONVERSATION`"
    return [f"Uncertain answers, to be looked at: {sum(uncertain.values())}{each}; {where}."]


def alike_lines(repeats: Mapping[str, Share], agreement: Mapping[tuple[str, str], Share]) -> list[str]:
    """How far a judge agrees with itself, and judges with one another, as plain shares."""
    return [
        *(f"{name}: {_share(share)} questions asked by each were answered alike." for name, share in repeats.items()),
        *(f"{a} and {b}: {_share(share)} ratings are equal." for (a, b), share in agreement.items()),
    ]


def _waiting(count: int) -> str:
    return f"; conversations that not all of them have rated: {count}" if count else ""


def _share(share: Share) -> str:
    percentage = f" ({100 * share.alike / share.total:.1f}%)" if share.total else ""
    return f"{share.alike} of {share.total}{percentage}"
