"""A run folder from somebody else whose names act on a terminal: every command shows them as text."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.test_hostile_chatbot import UNSAFE

EVIL = "\x1b]0;owned\x07\x1b[31m\u202e"


@pytest.fixture
def received(command: Command, tmp_path: Path) -> Path:
    """A run in whose store and manifest each free name has such characters behind it."""
    folder = tmp_path / "run"
    assert command("run", "--personas", "2", "--turns", "2", "--out", folder) == 0
    (folder / f"notes{EVIL}.txt").touch()
    with closing(sqlite3.connect(folder / "run.sqlite")) as db:
        db.execute("update conversations set id = id || ?, persona = persona || ?, detail = ?", (EVIL, EVIL, EVIL))
        for table in ("messages", "verdicts", "ratings", "rejected"):
            db.execute(f"update {table} set conversation = conversation || ?", (EVIL,))
        db.execute("update usage set model = model || ?", (EVIL,))
        db.commit()
    manifest = folder / "manifest.json"
    told = json.loads(manifest.read_text(encoding="utf-8"))
    told["notes"] = [EVIL]
    told["identity"]["chatbot"]["model"] += EVIL
    manifest.write_text(json.dumps(told), encoding="utf-8")
    return folder


def lost_message(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "run.sqlite")) as db:
        db.execute("delete from messages where turn = 1")
        db.commit()


COMMANDS: dict[str, Callable[[Path], tuple[str | Path, ...]]] = {
    "score": lambda run: ("score", run, "--by", "Age"),
    "show": lambda run: ("show", run),
    "stats": lambda run: ("stats", run),
    "report": lambda run: ("report", run, "--markdown", run.parent / "sum.md"),
    "compare": lambda run: ("compare", run, shutil.copytree(run, run.parent / "other")),
    "judge": lambda run: ("judge", run),
    "export": lambda run: ("export", run, run.parent / "export", "--to", "jsonl"),
    "recover": lambda run: ("recover", run),
    "purge": lambda run: ("purge", run, "--yes"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_names_of_a_foreign_run_are_shown_as_text(
    command: Command, received: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    if name == "recover":
        lost_message(received)
    capfd.readouterr()
    command(*COMMANDS[name](received))
    told = capfd.readouterr()
    assert "Traceback" not in told.err
    assert UNSAFE.search((told.out + told.err).replace("\r", "")) is None
