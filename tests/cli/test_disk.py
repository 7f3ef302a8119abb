"""A disk that is full, read-only or held by another program: one sentence, exit code 2, and nothing is lost."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command

FLAGS = ("run", "--personas", "4", "--turns", "6", "--seed", "7", "--out")


def mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, with 64 MB until it is made smaller."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0 or not mount("-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)):
        pytest.skip("a small file system can only be mounted by root, where mounting is allowed")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def remount(disk: Path, option: str) -> None:
    assert mount("-o", f"remount,{option}", str(disk))


def contents(folder: Path) -> dict[str, list[Any]]:
    tables = {"messages": "conversation, turn, text", "verdicts": "conversation, question, answer", "ratings": "*"}
    with closing(sqlite3.connect(folder / "run.sqlite")) as db:
        assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
        return {
            name: db.execute(f"select {columns} from {name} order by 1, 2, 3").fetchall()
            for name, columns in tables.items()
        }


@pytest.fixture
def undisturbed(command: Command, tmp_path: Path) -> Path:
    assert command(*FLAGS, tmp_path / "calm") == 0
    return tmp_path / "calm"


def must_end_the_same(command: Command, folder: Path, undisturbed: Path, before: dict[str, list[Any]]) -> None:
    assert command(*FLAGS, folder) == 0
    now = contents(folder)
    assert all(set(before[name]) <= set(now[name]) for name in before)
    assert now == contents(undisturbed)
    for name in ("scores.json", "results.csv", "conversations.jsonl"):
        assert (folder / name).read_bytes() == (undisturbed / name).read_bytes()


@pytest.mark.parametrize("kilobytes", [216, 256, 340, 420])
def test_a_full_disk_stops_a_run_which_goes_on_when_there_is_space(
    command: Command, disk: Path, undisturbed: Path, capfd: pytest.CaptureFixture[str], kilobytes: int
) -> None:
    folder = disk / "run"
    remount(disk, f"size={kilobytes}k")
    capfd.readouterr()
    assert command(*FLAGS, folder) == 2
    told = capfd.readouterr().err
    assert "No space is left to write" in told and "run the same command again" in told and "Traceback" not in told
    remount(disk, "size=64m")
    must_end_the_same(command, folder, undisturbed, contents(folder))


def test_a_read_only_disk_is_told(
    command: Command, disk: Path, undisturbed: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = disk / "run"
    assert command(*FLAGS[:-1], "--personas", "4", "--out", folder) == 0
    before = contents(folder)
    remount(disk, "ro")
    capfd.readouterr()
    assert command(*FLAGS, folder) == 2
    assert capfd.readouterr().err.count("cannot write there") == 1
    remount(disk, "rw")
    must_end_the_same(command, folder, undisturbed, before)


def test_a_store_that_another_program_holds_is_told(
    command: Command, undisturbed: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    with closing(connect(undisturbed / "run.sqlite", isolation_level=None)) as other:
        other.execute("begin exclusive")
        # It waits five seconds for others otherwise.
        monkeypatch.setattr("sqlite3.connect", lambda *a, **k: connect(*a, **{**k, "timeout": 0.1}))
        capfd.readouterr()
        assert command(*FLAGS, undisturbed) == 2
        assert "run.sqlite is locked by another program; close it there" in capfd.readouterr().err
        other.execute("rollback")
    assert command(*FLAGS, undisturbed) == 0
