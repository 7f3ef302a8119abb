"""The real engine on CPU, killed at three moments of a run: opened anew twice, the third time by the next command."""

from __future__ import annotations

import random
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from vera_local.data import data_root

pytestmark = pytest.mark.vllm

SECONDS = 600
PERSONAS = 6
ROWS = PERSONAS * (2 + 7)
"""Messages and verdicts of the whole run."""

Rows = dict[tuple[str, ...], str]


def kept_in(store: Path) -> Rows:
    """What is committed: each message and each answer by its place."""
    queries = (
        "select 'message', conversation, turn, text from messages",
        "select 'verdict', conversation, question, coalesce(answer, '') from verdicts",
    )
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db, suppress(sqlite3.OperationalError):
        return {(kind, id, str(place)): text for query in queries for kind, id, place, text in db.execute(query)}
    return {}


@pytest.fixture
def brief(tmp_path: Path) -> str:
    """The embedded model with short replies: a CPU takes minutes for long ones."""
    shipped = (data_root() / "models" / "smollm2-135m-instruct.toml").read_text(encoding="utf-8")
    profile = tmp_path / "smollm2-135m-instruct.toml"
    profile.write_text(re.sub(r"max_tokens = \d+", "max_tokens = 24", shipped), encoding="utf-8")
    return str(profile)


def engines_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    with suppress(psutil.Error):
        children = psutil.Process(process.pid).children(recursive=True)
        return [p for p in children if "EngineCore" in " ".join(p.cmdline()) and p.status() != psutil.STATUS_ZOMBIE]
    return []


def kill_at(process: subprocess.Popen[str], store: Path, point: int, killed: set[int]) -> Rows:
    """Kill the engine that is new since the last time when it got something done and so many rows are there; gives
    them."""
    end = time.monotonic() + SECONDS
    point = max(point, 1 + len(kept_in(store)) if killed else 0)
    while True:
        assert process.poll() is None and time.monotonic() < end
        rows, fresh = kept_in(store) if store.exists() else {}, [p for p in engines_of(process) if p.pid not in killed]
        if len(rows) >= point and fresh:
            fresh[0].kill()
            killed.add(fresh[0].pid)
            return kept_in(store)
        time.sleep(0.05)


def test_a_killed_engine_is_opened_anew_at_any_moment(tmp_path: Path, brief: str) -> None:
    program, store = Path(sys.executable).with_name("vera-local"), tmp_path / "run" / "run.sqlite"
    players = [word for role in ("chatbot", "judge") for word in (f"--{role}", brief)]
    # Asked ahead, all answers would come at once, and there would be no moment among them.
    one_by_one = ["--no-evidence", "--lookahead", "0"]
    options = ["--out", "run", "--bundle", "psychosis", "--personas", str(PERSONAS), *one_by_one, *players]
    points = sorted(random.Random(9).sample(range(1, ROWS // 2), 3))
    process = subprocess.Popen(
        [str(program), "run", *options], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    killed: set[int] = set()
    try:
        kept = [kill_at(process, store, point, killed) for point in points]
        told, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 1, told
    assert told.count("opening the engines anew") == 2
    assert "Traceback" not in told
    again = subprocess.run(
        [str(program), "run", *options], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS
    )
    assert again.returncode == 0, again.stderr
    now = kept_in(store)
    assert len(now) == ROWS
    assert all(rows.items() <= now.items() for rows in kept)
