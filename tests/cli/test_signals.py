"""Whoever asks a run to stop, by whatever signal: it stops in order, says how to go on, and nothing is lost."""

from __future__ import annotations

import os
import pty
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLAGS = ("run", "--personas", "4", "--turns", "6", "--seed", "7")
PROGRAM = (sys.executable, "-m", "tests.cli.stoppable")


def kept(folder: Path) -> dict[str, set[tuple[object, ...]]]:
    """What is in the store so far."""
    tables = {"messages": "conversation, turn, text", "verdicts": "conversation, question, answer"}
    try:
        with closing(sqlite3.connect(f"file:{folder / 'run.sqlite'}?mode=ro", uri=True)) as db:
            return {name: set(db.execute(f"select {columns} from {name}")) for name, columns in tables.items()}
    except sqlite3.OperationalError:
        return {name: set() for name in tables}


def wait_for_messages(folder: Path, number: int, ended: Callable[[], bool]) -> None:
    while len(kept(folder)["messages"]) < number:
        assert not ended(), "it ended too early"
        time.sleep(0.01)


def finish(folder: Path) -> None:
    subprocess.run([*PROGRAM, *FLAGS, "--out", str(folder)], cwd=ROOT, check=True, capture_output=True, timeout=120)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calm") / "run"
    finish(folder)
    return folder


def must_end_the_same(folder: Path, undisturbed: Path, before: dict[str, set[tuple[object, ...]]]) -> None:
    finish(folder)
    now = kept(folder)
    assert all(before[name] <= now[name] for name in before)
    assert now == kept(undisturbed)
    assert (folder / "scores.json").read_bytes() == (undisturbed / "scores.json").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_a_run_in_order(tmp_path: Path, undisturbed: Path, number: signal.Signals) -> None:
    folder = tmp_path / "run"
    process = subprocess.Popen(
        [*PROGRAM, *FLAGS, "--out", str(folder)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    wait_for_messages(folder, 5, lambda: process.poll() is not None)
    process.send_signal(number)
    told, _ = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "the same command goes on from there" in told and "Traceback" not in told
    must_end_the_same(folder, undisturbed, kept(folder))


def test_a_closed_terminal_stops_a_run_in_order(tmp_path: Path, undisturbed: Path) -> None:
    folder = tmp_path / "run"
    # Between fork and exec nothing but exec is done.
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, [*PROGRAM, *FLAGS, "--out", str(folder)])
    wait_for_messages(folder, 5, lambda: False)
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    must_end_the_same(folder, undisturbed, kept(folder))


def test_under_nohup_a_run_goes_on_when_the_terminal_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = subprocess.Popen(
        [*PROGRAM, *FLAGS, "--out", str(folder)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=partial(signal.signal, signal.SIGHUP, signal.SIG_IGN),
    )
    wait_for_messages(folder, 5, lambda: process.poll() is not None)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=120) == 0
