"""Attempts to reach something over the network, and the file that keeps them. Knows not which are allowed."""

from __future__ import annotations

import contextlib
import json
import multiprocessing.process
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Literal

Verdict = Literal["allowed", "refused", "let through"]

FRAMES = 40
"""Calls of a stack that are kept, the innermost ones."""

LONGEST = 255
"""Characters of a destination that are kept; no host name is longer."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: when (UTC), in which process, with which call, where to, and what became of it.

    `stack` holds files, lines and functions, the innermost last: no code and no values, so nothing of a transcript.
    """

    time: str
    pid: int
    process: str
    call: str
    destination: str
    verdict: Verdict
    stack: tuple[str, ...] = ()

    def told(self) -> str:
        """In a few words."""
        return f"{self.call} {self.destination} in {self.process} ({self.pid}): {self.verdict}"


def note(call: str, destination: str, verdict: Verdict, frame: FrameType | None) -> Attempt:
    """What this process attempts now, called from `frame`."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return Attempt(now, os.getpid(), _process(), call, destination[:LONGEST], verdict, _stack(frame))


def _process() -> str:
    """What a process that Python started is called there; else the program's name."""
    name = multiprocessing.process.current_process().name
    if name != "MainProcess":
        return name
    # `-c` or `-m` stand in a program's place; so early, there may be no arguments yet.
    program = Path((getattr(sys, "argv", None) or [""])[0]).name
    return "python" if program in ("", "-c", "-m") else program


def _stack(frame: FrameType | None) -> tuple[str, ...]:
    calls: list[str] = []
    while frame is not None and len(calls) < FRAMES:
        calls.append(f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return tuple(reversed(calls))


def write(file: Path, attempts: Iterable[Attempt]) -> bool:
    """Append to a file that its owner alone can read; whether that worked. Several processes may write at once."""
    lines = "".join(json.dumps(asdict(attempt)) + "\n" for attempt in attempts)
    if not lines:
        return True
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            return os.write(descriptor, lines.encode()) > 0
        finally:
            os.close(descriptor)
    except OSError:
        return False


def read(file: Path, start: int = 0) -> tuple[Attempt, ...]:
    """The attempts in a file from byte `start` on; none where there is no file, and no line that is torn."""
    try:
        lines = file.read_bytes()[start:].splitlines()
    except OSError:
        return ()
    found: list[Attempt] = []
    for line in lines:
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            attempt = Attempt(**json.loads(line))
            found.append(replace(attempt, stack=tuple(attempt.stack)))
    return tuple(found)
