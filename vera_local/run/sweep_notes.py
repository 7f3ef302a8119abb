"""How far each point of a sweep is, in a file beside the runs. Knows no run's contents."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

from vera_local.errors import UserError
from vera_local.report.files import write_file
from vera_local.run.sweep_file import Point

NAME = "sweep.json"
SCHEMA = 1


class State(StrEnum):
    """How far a point is."""

    WAITING = "waiting"
    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"
    """For a reason of its own; the same command tries again."""
    REMOVED = "removed"
    """It is in the sweep's file no more; its run stays where it is."""


class Notes:
    """The points of a sweep by name, each with its state; written at each change, for the owner alone."""

    def __init__(self, folder: Path, points: Iterable[Point]) -> None:
        before = read_notes(folder)
        self._file = folder / NAME
        self.points: dict[str, dict[str, Any]] = {p.name: _noted(p, before.get(p.name)) for p in points}
        self.points |= {name: its | {"state": State.REMOVED} for name, its in before.items() if name not in self.points}

    def state(self, name: str) -> State:
        """How far a point is."""
        return State(self.points[name]["state"])

    def enter(self, name: str, state: State, reason: str = "") -> None:
        """Note how far a point is, and why it is there."""
        self.points[name] |= {"state": state, "reason": reason}
        self.save()

    def of(self, state: State) -> dict[str, str]:
        """The points in a state, each with the reason that was given."""
        return {name: its["reason"] for name, its in self.points.items() if its["state"] == state}

    def save(self) -> None:
        """Write the file; raises UserError as `write_file`."""
        told = {"schema": SCHEMA, "points": self.points}
        write_file(self._file, (json.dumps(told, indent=2, ensure_ascii=False) + "\n").encode())


def read_notes(folder: Path) -> dict[str, dict[str, Any]]:
    """The points of the sweep in a folder; empty where there is none. UserError where its file is damaged."""
    file = folder / NAME
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        if told["schema"] != SCHEMA:
            raise ValueError
        points: dict[str, dict[str, Any]] = told["points"]
        for its in points.values():
            State(its["state"])
            str(its["reason"])
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}); name another out under [sweep]") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(
            f"{file}: damaged or of another version; remove it: the runs beside it keep all that was done, and the "
            "same command goes on with them"
        ) from None
    return points


def _noted(point: Point, before: dict[str, Any] | None) -> dict[str, Any]:
    """A point as it was left, or a new one."""
    about = {"chatbot": point.chatbot, "simulator": point.simulator, "bundle": point.bundle, "seed": point.seed}
    kept = {"state": before["state"], "reason": before["reason"]} if before is not None else {}
    if kept.get("state") == State.REMOVED:
        # What it was before is not known; its run tells.
        kept = {}
    return about | {"state": State.WAITING, "reason": ""} | kept
