"""How far a stage is: done, in flight, tokens per second, time left. Knows numbers only, never a text of the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from vera_local.engine.seam import NO_USAGE, Usage
from vera_local.report.layout import duration
from vera_local.report.reading import harmless

LINE_SECONDS = 15.0
"""Pause between two lines where the output is no terminal: enough to see life in a log, few enough to read it."""

Clock = Callable[[], float]


@dataclass
class Meter:
    """Counts of one stage. Work is counted in `steps` (messages, questions), `jobs` are conversations; `settled` tells
    whether their numbers are known: while conversations still come, it is not told how long is left. `moved`: how often
    a conversation went on elsewhere since its engine was lost."""

    stage: str
    jobs: int
    steps: int
    clock: Clock = time.monotonic
    settled: Callable[[], bool] = lambda: True
    jobs_done: int = 0
    in_flight: int = 0
    moved: int = 0
    steps_done: int = 0
    usage: Usage = NO_USAGE
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    @property
    def rate(self) -> float:
        """Tokens per second since the stage began: prompt tokens computed and tokens written."""
        elapsed = self.clock() - self.began
        return (self.usage.computed + self.usage.output) / elapsed if elapsed > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds to go at the pace so far; None until a tenth is done, since the first steps tell too little."""
        if not self.settled() or self.steps_done * 10 < self.steps or self.steps_done == 0:
            return None
        return (self.clock() - self.began) * (self.steps - self.steps_done) / self.steps_done

    def text(self) -> str:
        """The counts on one line."""
        left = "" if self.left is None else f", about {duration(self.left)} left"
        return (
            f"{self.jobs_done}/{self.jobs} done, {self.in_flight} in flight{self.moves}, {self.rate:.0f} tokens/s{left}"
        )

    @property
    def moves(self) -> str:
        """How many went on elsewhere; empty where none did."""
        return f", {self.moved} moved to other engines" if self.moved else ""


class Watcher:
    """Shows stages on a console: a moving bar on a terminal, plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: Progress | None = None

    def say(self, line: str) -> None:
        """One plain line, which can hold what a server said."""
        self._console.print(harmless(line), highlight=False, markup=False, soft_wrap=True)

    @contextmanager
    def waiting(self, line: str) -> Iterator[None]:
        """Something long without a measure, such as loading a model."""
        self.say(line)
        began = time.monotonic()
        if self._console.is_terminal:
            with self._console.status("working"):
                yield
        else:
            yield
        self.say(f"  ready after {duration(time.monotonic() - began)}")

    @contextmanager
    def stage(self, meter: Meter) -> Iterator[Callable[[], None]]:
        """Show a stage while it runs; call what is given whenever the meter changed."""
        self.say(f"{meter.stage}: {meter.jobs} conversations")
        yield from self._bar(meter) if self._console.is_terminal else self._lines(meter)
        self.say(f"{meter.stage}: {_finished(meter)}")

    def _bar(self, meter: Meter) -> Iterator[Callable[[], None]]:
        bars = self._shown()
        task: TaskID = bars.add_task(meter.stage, total=meter.steps, counts=meter.text())
        try:
            yield lambda: bars.update(task, completed=meter.steps_done, total=meter.steps, counts=meter.text())
        finally:
            bars.remove_task(task)
            if not bars.tasks:
                bars.stop()
                self._bars = None

    def _shown(self) -> Progress:
        """What shows the bars of all stages that go on at the same time: a terminal has one place for them."""
        if self._bars is None:
            columns = (
                SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[counts]}"),
            )  # fmt: skip
            self._bars = Progress(*columns, console=self._console, transient=True)
            self._bars.start()
        return self._bars

    def _lines(self, meter: Meter) -> Iterator[Callable[[], None]]:
        said = meter.began

        def changed() -> None:
            nonlocal said
            if meter.clock() - said >= LINE_SECONDS:
                said = meter.clock()
                self.say(f"  {meter.stage}: {meter.text()}")

        yield changed


class NamedWatcher(Watcher):
    """Shows what it is told beside other work, with a name before it."""

    def __init__(self, name: str, shown: Watcher) -> None:
        self._name = name
        self._all = shown

    def say(self, line: str) -> None:
        """As `Watcher.say`."""
        self._all.say(f"{self._name}: {line}")

    @contextmanager
    def waiting(self, line: str) -> Iterator[None]:
        """As `Watcher.waiting`."""
        with self._all.waiting(f"{self._name}: {line}"):
            yield

    @contextmanager
    def stage(self, meter: Meter) -> Iterator[Callable[[], None]]:
        """As `Watcher.stage`."""
        meter.stage = f"{self._name}: {meter.stage}"
        with self._all.stage(meter) as changed:
            yield changed


def _finished(meter: Meter) -> str:
    took = duration(meter.clock() - meter.began)
    return f"{meter.jobs_done}/{meter.jobs} done in {took}{meter.moves}, {meter.rate:.0f} tokens/s"
