"""Stopping the real thing: Ctrl-C and kill -9 while vLLM starts and while it generates, on CPU."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.vllm

Started = Callable[[], "subprocess.Popen[str]"]


def left_outside() -> set[str]:
    """VLLM's shared memory and sockets, which hold token ids of transcripts and must not outlive a run."""
    return {p.name for place in (Path("/dev/shm"), Path(tempfile.gettempdir())) for p in place.iterdir() if ours(p)}


def ours(path: Path) -> bool:
    return path.name.startswith("psm_") or path.is_socket() or path.name.startswith("vera_local-")


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Starts `vera-local run` in a session of its own, as a terminal does; what is left of it is killed at the end."""
    processes: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        program = Path(sys.executable).with_name("vera-local")
        arguments = ["run", "--out", "run", "--personas", "2", "--turns", "30"]
        process = subprocess.Popen(
            [program, *arguments],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        for left in family(process):
            left.kill()


def family(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """All living processes of the group that `process` leads, whoever their parent is now."""
    return [p for p in psutil.process_iter() if group_of(p) == process.pid and p.status() != psutil.STATUS_ZOMBIE]


def group_of(process: psutil.Process) -> int | None:
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return None


def wait_until(true: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def messages(folder: Path) -> list[tuple[str, int, str]]:
    store = folder / "run" / "run.sqlite"
    if not store.exists():
        return []
    with closing(sqlite3.connect(store)) as db:
        try:
            return db.execute("select conversation, turn, text from messages order by 1, 2").fetchall()
        except sqlite3.OperationalError:
            return []


def loading(process: subprocess.Popen[str]) -> Callable[[], bool]:
    """Whether vLLM's own processes are on their way."""
    return lambda: len(family(process)) >= 3


@pytest.mark.parametrize("moment", ["loading", "generating"])
def test_ctrl_c_stops_within_five_seconds_and_says_how_to_go_on(tmp_path: Path, started: Started, moment: str) -> None:
    before, process = left_outside(), started()
    ready = loading(process) if moment == "loading" else lambda: len(messages(tmp_path)) >= 3
    assert wait_until(ready, 240)
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=5)
    assert process.returncode == 130
    assert "the same command goes on from there" in out
    assert "Traceback" not in out
    assert wait_until(lambda: family(process) == [], 2)
    assert wait_until(lambda: left_outside() <= before, 2)


def test_kill_9_leaves_no_process_and_the_same_command_goes_on(tmp_path: Path, started: Started) -> None:
    before, process = left_outside(), started()
    assert wait_until(lambda: len(messages(tmp_path)) >= 3, 240)
    assert len(family(process)) >= 3
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=10)
    assert wait_until(lambda: family(process) == [], 5)
    kept = messages(tmp_path)
    again = started()
    assert wait_until(lambda: len(messages(tmp_path)) > len(kept), 240)
    assert set(kept) <= set(messages(tmp_path))
    os.killpg(again.pid, signal.SIGTERM)
    again.communicate(timeout=5)
    assert wait_until(lambda: family(again) == [], 2)
    assert wait_until(lambda: left_outside() <= before, 2)
