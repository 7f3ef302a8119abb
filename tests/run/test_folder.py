"""A run folder that may come from somebody else: what is in it leads nowhere else, and nothing in it stays open."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.answers import at_random
from tests.run.conftest import MakePlan, Opened
from vera_local.bundle import Bundle
from vera_local.errors import UserError
from vera_local.run import Watcher, judge_run, run, score_run
from vera_local.run.folder import locked
from vera_local.run.purging import purge_run
from vera_local.run.reading import read_run
from vera_local.run.recovering import recover_run
from vera_local.run.stats import work_of
from vera_local.run.viewed import title_of

Answering = Callable[..., Opened]

READERS: dict[str, Callable[[Path, Bundle], object]] = {
    "score": score_run,
    "show": lambda folder, bundle: read_run(folder, bundle, None, None),
    "stats": lambda folder, bundle: work_of(folder),
    "view": lambda folder, bundle: title_of(folder),
    "recover": lambda folder, bundle: recover_run(folder),
    "purge": lambda folder, bundle: purge_run(folder),
}


@pytest.fixture
async def received(make: MakePlan, answering: Answering, watcher: Watcher) -> Path:
    plan = make(personas=1, turns=2)
    await run(plan, answering(at_random), watcher)
    return plan.out


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A database of the user's own."""
    file = tmp_path / "private.db"
    with closing(sqlite3.connect(file)) as db:
        db.execute("create table mine (a)")
    return file


@pytest.mark.parametrize("name", ["run.sqlite", "run.sqlite-wal", "run.sqlite-shm", "run.lock", "engine.log"])
@pytest.mark.parametrize("command", READERS)
def test_no_file_elsewhere_is_written_through_a_link(
    received: Path, private: Path, make: MakePlan, name: str, command: str
) -> None:
    before = private.read_bytes()
    (received / name).unlink(missing_ok=True)
    (received / name).symlink_to(private)
    with pytest.raises(UserError, match=f"{name} is a link, which can lead out of the run"):
        READERS[command](received, make().bundle)
    assert private.read_bytes() == before


async def test_a_link_to_nothing_makes_no_file(
    tmp_path: Path, received: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    (received / "run.lock").unlink()
    (received / "run.lock").symlink_to(tmp_path / "elsewhere")
    plan = make(personas=1, turns=2)
    for work in (run(plan, answering(at_random), watcher), judge_run(plan, answering(at_random), watcher)):
        with pytest.raises(UserError, match="is a link"):
            await work
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("name", ["manifest.json", "network.log", "run.sqlite", "scores.json"])
def test_what_need_not_end_is_not_read(received: Path, make: MakePlan, name: str, command: str) -> None:
    (received / name).unlink(missing_ok=True)
    os.mkfifo(received / name)
    with pytest.raises(UserError, match=f"{name} is a pipe or a device"):
        READERS[command](received, make().bundle)


def test_a_device_is_not_read_through_a_link(received: Path) -> None:
    (received / "network.log").symlink_to("/dev/zero")
    with pytest.raises(UserError, match=r"network\.log is a pipe or a device"):
        title_of(received)


def test_links_that_lead_nowhere_or_to_plain_files_are_the_user_s_own(received: Path, tmp_path: Path) -> None:
    (received / "notes").symlink_to(tmp_path)
    (received / "gone").symlink_to(tmp_path / "gone")
    assert title_of(received)


def test_a_run_is_made_private_through_a_link_to_it(tmp_path: Path) -> None:
    folder, link = tmp_path / "run", tmp_path / "latest"
    folder.mkdir(mode=0o755)
    link.symlink_to(folder)
    with locked(link):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_file_that_is_not_ours_to_change_keeps_no_other_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / name for name in ("a", "b", "c")]
    for file in files:
        file.touch()
        file.chmod(0o644)
    others, change = files[1], Path.chmod

    def chmod(path: Path, mode: int) -> None:
        if path == others:
            raise PermissionError(1, "Operation not permitted")
        change(path, mode)

    monkeypatch.setattr(Path, "chmod", chmod)
    with locked(tmp_path):
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files}
    assert modes == {"a": 0o600, "b": 0o644, "c": 0o600}
