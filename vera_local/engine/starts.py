"""Which programs would start without the guard, as Python tells of them before. Knows no guard and no network."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vera_local.engine import heirs

_NAME = re.compile(r"(python|pypy)[\d.]*t?")

_HASH_BANG = 200
"""Bytes of a script's first line that are looked at."""


def unguarded(program: Any, environment: Mapping[Any, Any] | None) -> str | None:
    """How a Python is told that finds no guard in its environment (None: this process's); None for all else."""
    if isinstance(environment, heirs.Disowned):
        return None
    own = os.environ if environment is None else environment
    variables = {os.fsdecode(name): os.fsdecode(value) for name, value in own.items()}
    if heirs.reach(variables):
        return None
    file = f"/proc/self/fd/{program}" if isinstance(program, int) else os.fsdecode(program)
    found = shutil.which(file, path=variables.get("PATH"))
    return f"{found} without the guard" if found is not None and _is_python(found) else None


def _is_python(file: str) -> bool:
    """By its name, also where a link leads to it, or by what its first line asks for."""
    return any(_NAME.fullmatch(Path(name).name) for name in (file, os.path.realpath(file))) or _asks_for_python(file)


def _asks_for_python(script: str) -> bool:
    try:
        with Path(script).open("rb") as opened:
            line = opened.readline(_HASH_BANG)
    except OSError:
        return False
    return line.startswith(b"#!") and re.search(rb"\b(python|pypy)", line) is not None
