"""What a run used is told by its record, and what it cost only where that can be known."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import ChatMessage, Request, Sampling
from vera_local.run.ledger import Ledger
from vera_local.run.store import NAME, Store

Command = Callable[..., int]


@pytest.fixture
def folder(command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Path:
    """A run as a version without a record left it."""
    assert command("run", "--personas", "4", "--turns", "4", "--out", tmp_path / "run") == 0
    with closing(sqlite3.connect(tmp_path / "run" / NAME)) as db:
        for table in ("usage", "stages", "sessions"):
            db.execute(f"delete from {table}")
        db.commit()
    capfd.readouterr()
    return tmp_path / "run"


def work(folder: Path) -> None:
    """One session, in which a judge was asked twice."""
    request = Request((ChatMessage("user", "one two three"),), Sampling(temperature=0, top_p=1, max_tokens=9, seed=1))

    async def session() -> None:
        with Store.open(folder) as store, Ledger(store) as ledger, ledger.stage("judge"):
            engine = ledger.metered(FakeEngine(lambda r: "so it is"), "judge", "judge", "a-judge")
            for _ in range(2):
                reply = await engine.generate(request)
            ledger.kept("judge", "judge", "a-judge", reply.usage)

    asyncio.run(session())


def test_a_run_without_a_record_says_so_with_what_its_store_tells(
    command: Command, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command("stats", folder) == 0
    out = capfd.readouterr().out
    assert "No usage was recorded: this run was made by a version that kept no account of it" in out
    assert "simulator: " in out
    assert "judge: " in out
    assert command("stats", folder, "--gpu-hour-price", "2") == 2
    assert "kept no record of its time" in capfd.readouterr().err
    assert command("stats", folder, "--json") == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["sessions"], told["usage"], told["conversations"], told["cost"]) == ([], [], 4, None)
    assert told["stored"]["judge"]["output"] > 0


def test_of_a_run_that_asked_nothing_this_is_said(
    command: Command, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command("import", folder / "conversations.jsonl", "--out", tmp_path / "imported") == 0
    capfd.readouterr()
    assert command("stats", tmp_path / "imported") == 0
    assert capfd.readouterr().out == "No model was asked anything for this run so far.\n"


def test_a_record_is_shown_and_what_it_cost(command: Command, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        work(folder)
    assert command("stats", folder) == 0
    out = " ".join(capfd.readouterr().out.split())
    assert "judge: judge 4 0 0 16 0.0% 12 14 a-judge" in out
    assert "in 2 sessions" in out
    assert "Part of the run is without a record" in out
    assert "Cost" not in out
    assert command("stats", folder, "--gpu-hour-price", "2.5", "--gpus", "2") == 0
    out = " ".join(capfd.readouterr().out.split())
    assert "x 2 GPU(s) x 2.5 per GPU hour" in out
    assert "for each of 4 conversations" in out
    assert "about $220 for each provider" in out


def test_the_record_as_json(command: Command, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    work(folder)
    assert command("stats", folder, "--json", "--gpu-hour-price", "2.5", "--gpus", "2") == 0
    told = json.loads(capfd.readouterr().out)
    (judge,) = told["usage"]
    assert (judge["stage"], judge["role"], judge["model"]) == ("judge", "judge", "a-judge")
    assert (judge["requests"], judge["tokens"]["prompt"], judge["kept"]["prompt"], judge["unused"]) == (2, 8, 4, 7)
    assert judge["amplification"] == 2
    assert len(told["sessions"]) == 1
    assert told["cost"]["total"] == pytest.approx(told["wall_s"] / 3600 * 2 * 2.5)


def test_wrong_input_is_refused(command: Command, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    work(folder)
    assert command("stats", folder.parent) == 2
    assert "holds no run" in capfd.readouterr().err
    for price in ("-1", "nan", "inf", "much"):
        assert command("stats", folder, "--gpu-hour-price", price) == 2, price
        told = capfd.readouterr()
        assert "--gpu-hour-price" in told.err and not told.out
    assert command("stats", folder, "--gpu-hour-price", "1", "--gpus", "0") == 2
    assert "--gpus" in capfd.readouterr().err
    assert command("stats", folder, "--gpus", "2") == 2
    assert "--gpu-hour-price" in capfd.readouterr().err
