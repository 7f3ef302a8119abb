"""The flags of the command line as keys of a config, and how they were written. Checks no value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vera_local.errors import UserError
from vera_local.run.roles import role_table

JUDGE_FLAGS = {
    "judge_mode": "mode",
    "judge_repeats": "repeats",
    "judge_window": "window",
    "judge_evidence": "evidence",
    "judge_confidence": "confidence",
}
"""Flags that hold for every judge of the command line -> the key that each sets."""

FLAG_NAMES = {
    "judge_evidence": "--no-evidence",
    "judge_confidence": "--no-confidence",
    "judge_window": "--judge-window",
}
"""Flags that have no value and are not called as their key."""


def settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The flags as keys of the config: those for judges go into each judge's table."""
    shared = {key: given[flag] for flag, key in JUDGE_FLAGS.items() if flag in given}
    own = {key: value for key, value in given.items() if key not in JUDGE_FLAGS}
    if not shared:
        return own
    if "judge" not in own:
        flag = next(flag_as_written(name, given) for name in JUDGE_FLAGS if name in given)
        raise UserError(f"{flag}: holds for the judges of the command line; name them with --judge")
    judges = own["judge"] if isinstance(own["judge"], list | tuple) else [own["judge"]]
    return own | {"judge": [_with(judge, shared) for judge in judges]}


def _with(judge: Any, shared: Mapping[str, Any]) -> Any:
    """A judge's table with the shared settings; a text that names none is left for the validation to refuse."""
    try:
        return role_table(judge) | shared
    except ValueError:
        return judge


def flag_as_written(name: str, given: Mapping[str, Any]) -> str:
    """A flag as it was written."""
    return FLAG_NAMES.get(name) or f"--{name.replace('_', '-')} {given[name]}"
