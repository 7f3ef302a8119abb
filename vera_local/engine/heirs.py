"""Tells each Python that this process starts how to guard itself, before it imports anything. Knows no guard."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "VERA_LOCAL_GUARD"
"""Carries the settings to the processes that a run starts; set by `tell` alone."""

FOLDER = str(Path(__file__).with_name("startup"))
"""Holds a `sitecustomize`, which Python imports when it starts (not with -I, -E or -S) where it can find it."""

_PATH = "PYTHONPATH"


def tell(settings: str) -> None:
    """Let all that is started from now on find these settings of the guard, and what reads them."""
    os.environ[VARIABLE] = settings
    others = _without_ours(os.environ.get(_PATH, ""))
    os.environ[_PATH] = os.pathsep.join([FOLDER, *others])
    if FOLDER not in sys.path:
        # Torch starts the processes that compile for it with this in the variable's place.
        sys.path.insert(1, FOLDER)


def told() -> str | None:
    """The settings that the run which started this process has told; None where there is none."""
    return os.environ.get(VARIABLE)


def reach(environment: Mapping[str, str]) -> bool:
    """Whether a Python with this environment finds what was told, and what reads it."""
    return VARIABLE in environment and FOLDER in environment.get(_PATH, "").split(os.pathsep)


class Disowned(dict[str, str]):
    """The environment of a program that is its user's own, and not to be guarded."""


def disowned(environment: Mapping[str, str]) -> Disowned:
    """The same without what `tell` has put there; what is made of it by `|` is a plain one again."""
    kept = {name: value for name, value in environment.items() if name not in (VARIABLE, _PATH)}
    others = _without_ours(environment.get(_PATH, ""))
    return Disowned(kept | ({_PATH: os.pathsep.join(others)} if others else {}))


def _without_ours(path: str) -> list[str]:
    return [folder for folder in path.split(os.pathsep) if folder not in ("", FOLDER)]
