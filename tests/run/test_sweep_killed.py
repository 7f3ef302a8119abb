"""kill -9 in a sweep at any moment, then the same command: nothing is lost or doubled, and all runs end the same."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.kept import contents
from vera_local.engine.probe import SEED as PROBE
from vera_local.run.store import NAME
from vera_local.run.sweep_file import Point, read_sweep
from vera_local.seed import derive

SCRIPT = Path(__file__).with_name("sweepable.py")
TEXT = """
personas = 3
turns = 4
simulator = "qwen3-14b"
judge = ["smollm2-135m-instruct", "qwen3-32b-fp8"]
[sweep]
out = "{out}"
seeds = [1, 2]
[[chatbot]]
model = "qwen3-8b"
[[chatbot]]
model = "qwen3-14b-awq"
"""


def written(folder: Path) -> Path:
    file = folder / "sweep.toml"
    folder.mkdir()
    file.write_text(TEXT.format(out=folder / "out"), encoding="utf-8")
    return file


def start(file: Path, log: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(SCRIPT), str(file), str(log)])


def replies(point: Point, held: dict[str, list[tuple[Any, ...]]]) -> set[str]:
    """What a log says of the requests for the chatbot's messages."""
    turns = [(id, turn) for id, turn, *_ in held["messages"] if turn % 2 == 0]
    return {f"{point.chatbot} {derive(point.seed, id, turn)}" for id, turn in turns}


def test_a_killed_sweep_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    calm, file, draw, kills, ended = written(tmp_path / "calm"), written(tmp_path / "killed"), random.Random(5), 0, -1
    assert start(calm, tmp_path / "calm.log").wait(timeout=120) == 0
    points = {point.plan.out: point for point in read_sweep(file).points}
    while ended != 0:
        log = tmp_path / f"log{kills}"
        kept = {folder: contents(folder) for folder in points if (folder / NAME).exists()}
        process = start(file, log)
        wait_for_lines(process, log, draw.randrange(60, 160))
        process.send_signal(signal.SIGKILL)
        ended = process.wait(timeout=60)
        for folder, before in kept.items():
            now = contents(folder)
            assert all(set(before[table]) <= set(now[table]) for table in ("messages", "verdicts", "ratings"))
        done = {reply for folder, before in kept.items() for reply in replies(points[folder], before)}
        assert not done & set(log.read_text().splitlines()), "a reply that was kept was asked for again"
        kills += ended == -signal.SIGKILL
        assert kills < 40
    assert kills >= 2
    for folder in points:
        other = calm.parent / "out" / folder.name
        assert contents(folder) == contents(other)
        for name in ("results.csv", "conversations.jsonl", "scores.json"):
            assert (folder / name).read_bytes() == (other / name).read_bytes()


def wait_for_lines(process: subprocess.Popen[bytes], log: Path, lines: int) -> None:
    """Until the engine was asked that often, the trials of judges at each start not counted, or the process ended."""
    while process.poll() is None and not (log.exists() and len(asked_in(log)) >= lines):
        time.sleep(0.002)


def asked_in(log: Path) -> list[str]:
    """The seeds of requests that are part of the run."""
    return [line for line in log.read_text().splitlines() if line and line != str(PROBE)]
