"""kill -9 at any moment, then the same command: nothing finished is lost or asked again, and the result is the same."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request

from tests.chatbot.serving import Served
from vera_local.engine.probe import SEED as PROBE
from vera_local.run.config_file import load_config
from vera_local.run.plan import make_plan
from vera_local.run.store import NAME
from vera_local.seed import derive

SCRIPT = Path(__file__).with_name("killable.py")
SEED, SECOND = 7, "second"
TABLES = {
    "messages": "select conversation, turn, speaker, text from messages order by 1, 2",
    "verdicts": "select conversation, judge, question, place, state, answer from verdicts order by 1, 2, 3",
    "ratings": "select conversation, judge, dimension, rating, decided_by from ratings order by 1, 2, 3",
    "endings": "select id, ending from conversations order by 1",
}


def start(folder: Path, log: Path, *chatbot: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(SCRIPT), str(folder), str(log), *chatbot])


def contents(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(folder / NAME)) as db:
        return {name: db.execute(query).fetchall() for name, query in TABLES.items()}


def finished_seeds(folder: Path) -> set[int]:
    """The seeds of all requests whose result is in the store."""
    held = contents(folder)
    said = {derive(SEED, id, turn) if turn % 2 == 0 else derive(SEED, id, turn, 0) for id, turn, *_ in held["messages"]}
    judged = {derive(SEED, id, "judge", judge, question) for id, judge, question, *_ in held["verdicts"]}
    return said | judged


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    assert start(folder, folder.parent / "log").wait(timeout=120) == 0
    return folder


@pytest.mark.parametrize("moment", range(2))
def test_a_killed_run_goes_on_and_ends_the_same(tmp_path: Path, undisturbed: Path, moment: int) -> None:
    folder, draw, kills = tmp_path / "run", random.Random(moment), 0
    by_second = 0
    for attempt in range(100):
        log = tmp_path / f"log{attempt}"
        kept = contents(folder) if attempt and (folder / NAME).exists() else None
        done = finished_seeds(folder) if kept else set()
        process = start(folder, log)
        wait_for_lines(process, log, draw.randrange(1, 25))
        process.send_signal(signal.SIGKILL)
        ended = process.wait(timeout=60)
        logged = [int(line) for line in log.read_text().split()] if log.exists() else []
        asked = [seed for seed in logged if seed != PROBE]
        assert not done & set(asked), "a finished message or verdict was asked for again"
        assert len(asked) == len(set(asked))
        if kept:
            now = contents(folder)
            assert all(set(kept[table]) <= set(now[table]) for table in ("messages", "verdicts", "ratings"))
        if ended == 0:
            break
        kills += ended == -signal.SIGKILL
        by_second += (folder / NAME).exists() and any(judge == SECOND for _, judge, *_ in contents(folder)["verdicts"])
    assert kills >= 2
    assert by_second, "it was never killed while the second judge was at work"
    assert contents(folder) == contents(undisturbed)
    for name in ("results.csv", "conversations.jsonl", "scores.json"):
        assert (folder / name).read_bytes() == (undisturbed / name).read_bytes()


def repeats_seeds(log: Path) -> FastAPI:
    """A service that remembers nothing and writes down every seed before it replies."""
    app = FastAPI()

    @app.post("/talk")
    async def talk(request: Request) -> Any:
        body = await request.json()
        with log.open("a") as file:
            file.write(f"{body['seed']}\n")
        await asyncio.sleep(0.01)
        return {"reply": f"reply {body['seed']} to {body['text']}"}

    return app


def test_a_killed_run_with_a_service_asks_nothing_twice_and_loses_nothing(tmp_path: Path) -> None:
    log, ours = tmp_path / "asked", tmp_path / "ours"
    log.touch()
    served = Served(lambda: repeats_seeds(log))
    request = {"text": "{message}", "all": "{history}", "seed": "{seed}"}
    table = {"kind": "http", "url": f"{served.url}/talk", "request": request, "reply": "reply"}
    chatbot = json.dumps(table)
    calm, folder, kills, draw = tmp_path / "calm", tmp_path / "run", 0, random.Random(3)
    assert start(calm, ours, chatbot).wait(timeout=120) == 0
    ended = None
    while ended != 0:
        log.write_text("")
        kept = contents(folder)["messages"] if (folder / NAME).exists() else []
        done = {derive(SEED, id, turn) for id, turn, *_ in kept if turn % 2 == 0}
        process = start(folder, ours, chatbot)
        wait_for_lines(process, log, draw.randrange(2, 6))
        process.send_signal(signal.SIGKILL)
        ended = process.wait(timeout=60)
        asked = [int(line) for line in log.read_text().split()]
        assert not done & set(asked), "a reply that was kept was asked for again"
        assert len(asked) == len(set(asked))
        kills += ended != 0
        assert kills < 50
    assert kills >= 2
    assert contents(folder) == contents(calm)
    served.stop()


def wait_for_lines(process: subprocess.Popen[bytes], log: Path, lines: int) -> None:
    """Until the engine was asked that often, the trials of judges at each start not counted, or the process ended."""
    while process.poll() is None and not (log.exists() and len(asked_in(log)) >= lines):
        time.sleep(0.002)


def asked_in(log: Path) -> list[str]:
    """The seeds of requests that are part of the run."""
    return [line for line in log.read_text().splitlines() if line and line != str(PROBE)]


def test_the_run_covers_all_its_parts(undisturbed: Path) -> None:
    held = contents(undisturbed)
    plan = make_plan(load_config(None, {"personas": 4, "turns": 6}))
    assert len(held["messages"]) == 4 * 6
    assert len(held["ratings"]) == 2 * 4 * len(plan.bundle.rubric.dimensions)
    assert len(held["verdicts"]) >= 2 * 4
