"""What a user is told while a stage runs."""

from __future__ import annotations

import io

from rich.console import Console

from vera_local.engine.seam import Usage
from vera_local.run.progress import LINE_SECONDS, Meter, Watcher


class Clock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_pace_and_time_left() -> None:
    clock = Clock()
    meter = Meter("Judging", jobs=4, steps=40, clock=clock)
    assert meter.left is None
    clock.now += 10
    meter.steps_done, meter.usage, meter.in_flight, meter.jobs_done = 10, Usage(900, 500, 100), 2, 1
    assert [meter.rate, meter.left] == [50.0, 30.0]
    assert meter.text() == "1/4 done, 2 in flight, 50 tokens/s, about 30 s left"


def test_no_time_is_told_while_work_still_comes() -> None:
    clock, known = Clock(), False
    meter = Meter("Judging", jobs=4, steps=40, clock=clock, settled=lambda: known)
    clock.now += 10
    meter.steps_done = 10
    assert meter.left is None
    known = True
    assert meter.left == 30.0


def test_plain_lines_where_there_is_no_terminal() -> None:
    clock, output = Clock(), io.StringIO()
    meter = Meter("Simulating", jobs=2, steps=8, clock=clock)
    with Watcher(Console(file=output)).stage(meter) as changed:
        for _ in range(8):
            clock.now += LINE_SECONDS / 4
            meter.steps_done += 1
            changed()
        meter.jobs_done = 2
    lines = output.getvalue().splitlines()
    assert lines[0] == "Simulating: 2 conversations"
    assert len(lines) == 4
    assert "about" in lines[1]
    assert lines[-1].startswith("Simulating: 2/2 done in 30 s")
    assert "\x1b" not in output.getvalue()


def test_a_bar_on_a_terminal() -> None:
    output = io.StringIO()
    meter = Meter("Simulating", jobs=1, steps=1)
    with Watcher(Console(file=output, force_terminal=True, width=120)).stage(meter) as changed:
        meter.steps_done = meter.jobs_done = 1
        changed()
    assert "1/1 done" in output.getvalue()


def test_long_times_are_told_in_minutes_and_hours() -> None:
    clock = Clock()
    meter = Meter("Judging", jobs=1, steps=2, clock=clock)
    meter.steps_done = 1
    clock.now += 95
    assert meter.text().endswith("about 1 min 35 s left")
    clock.now += 2 * 3600
    assert meter.text().endswith("about 2 h 01 min left")
