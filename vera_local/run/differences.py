"""Where two descriptions of a run differ, told to its user. Knows of their keys only how models name their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vera_local.errors import UserError

OTHER_RUN = "name another --out, or ask for the same run again"
"""What to do where a run is another one."""


def must_agree(
    folder: Path, old: Mapping[str, Any], new: Mapping[str, Any], prefix: str, remedy: str = OTHER_RUN
) -> None:
    """UserError where `new` is not the `old` of the run in `folder`: what differs, behind `prefix`, and a remedy."""
    found = differing(old, new)
    if not found:
        return
    told = "; ".join(f"{prefix}{key} was {short(was)}, now {short(now)}" for key, was, now in found[:3])
    more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
    raise UserError(f"{folder} holds a different run: {told}{more}; {remedy}")


def must_have_same_files(folder: Path, old: Mapping[str, Any], new: Mapping[str, Any], remedy: str) -> None:
    """UserError where a model that both name at the same place has other files now: which model and file."""
    changed = _changed_file(old, new)
    if changed is not None:
        model, file, was, now = changed
        raise UserError(
            f"{folder}: {file} of {model} is not the file that the run began with (its sha256 was {short(was)}, now "
            f"{short(now)}); put that file back, or {remedy}"
        )


def _changed_file(old: Any, new: Any) -> tuple[str, str, Any, Any] | None:
    """Model, file, and both digests of the first file that differs."""
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return None
    if "model" in old and old["model"] == new.get("model") and "files" in old and "files" in new:
        return next(((old["model"], *found) for found in differing(old["files"], new["files"])), None)
    return next((found for key in old if (found := _changed_file(old[key], new.get(key))) is not None), None)


def differing(old: Any, new: Any) -> list[tuple[str, Any, Any]]:
    """Path, old and new value of each leaf that differs, by path; None for a leaf that is not there."""
    before, now = dict(flat(old)), dict(flat(new))
    keys = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    return [(key, before.get(key), now.get(key)) for key in keys]


def flat(value: Any, key: str = "") -> list[tuple[str, Any]]:
    """The leaves of nested tables, each with its path (`a.b.c`)."""
    if not isinstance(value, Mapping):
        return [(key, value)]
    return [pair for name, part in value.items() for pair in flat(part, f"{key}.{name}" if key else name)]


def short(value: Any, most: int = 60) -> str:
    """A value in at most so many characters."""
    text = "absent" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[: most - 3]}..."
