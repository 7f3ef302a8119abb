"""A watcher that remembers what is said to the user, and shows nothing."""

from __future__ import annotations

from rich.console import Console

from vera_local.run import Watcher


class Heard(Watcher):
    """`lines`: what was said, in order."""

    def __init__(self) -> None:
        super().__init__(Console(quiet=True))
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)
