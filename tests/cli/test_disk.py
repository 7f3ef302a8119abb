"""A disk that is full, read-only or held by another program: one sentence, exit code 2, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.kept import Contents, contents, must_be_the_same, must_hold
from vera_local.run.store import Store

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


@pytest.fixture
def undisturbed(command: Command, tmp_path: Path) -> Path:
    assert command(*FLAGS, tmp_path / "calm") == 0
    return tmp_path / "calm"


def must_end_the_same(command: Command, folder: Path, undisturbed: Path, before: Contents) -> None:
    assert command(*FLAGS, folder) == 0
    must_hold(folder, before)
    must_be_the_same(folder, undisturbed)


def kilobytes_of_the_bundle(run: Path) -> int:
    """What the bundle that a run keeps takes of a file system of pages, its folders included."""
    return sum(4 * (-(-place.stat().st_size // 4096) or 1) for place in (run / "bundle").rglob("*"))


@pytest.mark.parametrize(
    ("kilobytes", "told"),
    [(-100, "the bundle cannot be kept there (No space left on device); see to it and try again")]
    + [(kilobytes, "No space is left to write") for kilobytes in (100, 216, 256, 340, 420)],
)
def test_a_full_disk_stops_a_run_which_goes_on_when_there_is_space(
    command: Command, disk: Path, undisturbed: Path, capfd: pytest.CaptureFixture[str], kilobytes: int, told: str
) -> None:
    folder = disk / "run"
    remount(disk, f"size={kilobytes_of_the_bundle(undisturbed) + kilobytes}k")
    capfd.readouterr()
    assert command(*FLAGS, folder) == 2
    error = capfd.readouterr().err
    assert told in error and "Traceback" not in error
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


@pytest.mark.parametrize("killed", [False, True])
def test_a_run_on_a_read_only_disk_can_be_read(
    command: Command, disk: Path, undisturbed: Path, capfd: pytest.CaptureFixture[str], killed: bool
) -> None:
    folder = disk / "run"
    with Store.open(undisturbed) as store:
        store.reopen_failed()
        # While a store is open its log lies beside it, as it does after a kill.
        shutil.copytree(undisturbed, folder)
    if not killed:
        with Store.open(folder):
            pass
    assert (folder / "run.sqlite-wal").exists() == killed
    remount(disk, "ro")
    for asked in ("show", "stats"):
        assert command(asked, folder) == 0
    capfd.readouterr()
    assert command("score", folder) == 2
    assert "(Read-only file system); copy the folder to where one can" in capfd.readouterr().err


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
