"""What the driver needs of whatever starts workers and reaches them. Starts none itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from vera_local.run.cluster.wire import Failure, Line, Ready, Report, Task


class WorkerLost(Exception):
    """A worker or its machine is gone, or cannot be reached; its text says which, and why if that is known."""


class Remote(Protocol):
    """A worker, wherever it is; every method raises WorkerLost."""

    @property
    def name(self) -> str:
        """What it is called, for people."""
        ...

    async def ready(self) -> Ready | Failure:
        """Wait until its engines are open; why not, where they could not be opened."""
        ...

    async def report(self, pause: float) -> Report:
        """What is new with it; see `Worker.report`."""
        ...

    async def give(self, tasks: Sequence[Task], closed: Collection[Line]) -> None:
        """Jobs that it asked for, and lines for which no more will come."""
        ...

    async def stop(self) -> None:
        """End it, whatever it does; nothing where it is gone."""
        ...


class Fleet(Protocol):
    """Starts workers for one run."""

    @property
    def size(self) -> int:
        """How many workers there are to be."""
        ...

    async def start(self, number: int, lines: Sequence[Line]) -> Remote:
        """Start the worker of that number for these lines; it gets its engines ready by itself. Raises WorkerLost.

        One that takes the place of another has a number that is a multiple of `size` higher.
        """
        ...
