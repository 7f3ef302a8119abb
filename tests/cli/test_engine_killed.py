"""The real engine on CPU, killed while a run asks it: the run opens it anew, goes on and ends with all there is."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from vera_local.data import data_root

pytestmark = pytest.mark.vllm

SECONDS = 900


def messages(store: Path) -> dict[tuple[str, int], str]:
    if not store.exists():
        return {}
    with closing(sqlite3.connect(store)) as db:
        try:
            said = db.execute("select conversation, turn, text from messages").fetchall()
        except sqlite3.OperationalError:
            return {}
    return {(conversation, turn): text for conversation, turn, text in said}


@pytest.fixture
def brief(tmp_path: Path) -> str:
    """The embedded model with short replies: a CPU takes minutes for long ones."""
    shipped = (data_root() / "models" / "smollm2-135m-instruct.toml").read_text(encoding="utf-8")
    profile = tmp_path / "smollm2-135m-instruct.toml"
    profile.write_text(re.sub(r"max_tokens = \d+", "max_tokens = 24", shipped), encoding="utf-8")
    return str(profile)


def engine_of(process: subprocess.Popen[str]) -> psutil.Process:
    cores = [p for p in psutil.Process(process.pid).children(recursive=True) if "EngineCore" in " ".join(p.cmdline())]
    assert cores, "no engine process found"
    return cores[0]


def test_a_killed_engine_is_opened_anew(tmp_path: Path, brief: str) -> None:
    program, store = Path(sys.executable).with_name("vera-local"), tmp_path / "run" / "run.sqlite"
    players = [word for role in ("simulator", "chatbot", "judge") for word in (f"--{role}", brief)]
    command = [str(program), "run", "--out", "run", "--personas", "2", "--turns", "6", *players]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        end = time.monotonic() + SECONDS
        while len(messages(store)) < 3:
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        os.kill(engine_of(process).pid, signal.SIGKILL)
        kept = messages(store)
        told, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, told
    assert "opening the engines anew" in told and "Engines opened anew since one was lost: 1 times" in told
    assert "Traceback" not in told
    now = messages(store)
    assert kept.items() <= now.items()
    assert {turn for _, turn in now} == set(range(1, 7)) and len(now) <= 12
    with closing(sqlite3.connect(store)) as db:
        assert db.execute("select count(distinct conversation) from ratings").fetchone() == (2,)
