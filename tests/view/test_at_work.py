"""A run at work is watched, and neither it nor a finished one is touched."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from tests.faults import Killed, Slow
from tests.kept import contents
from tests.made_run import made_run
from tests.victims import Plot, Victims
from tests.view.asking import asking
from vera_local.run.folder import LOCK, at_work

RUN = "runs/run/"
FLAGS = ("run", "--personas", "3", "--turns", "6", "--out")
ENDS = ("", RUN, f"{RUN}progress", f"{RUN}conversations?sort=uncertain&words=message", f"{RUN}conversations/1")
HOLDER = """
import fcntl, os, sys
fcntl.lockf(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
print(1, flush=True)
input()
"""


def state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {f.name: (f.stat().st_mtime_ns, f.stat().st_mode, f.read_bytes()) for f in folder.iterdir() if f.is_file()}


def asked_once(client: TestClient) -> None:
    for end in ENDS:
        assert client.get(end).status_code == 200, end


def test_looking_at_a_finished_run_leaves_its_folder_as_it_is(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", 12)
    before = state(folder)
    asked_once(asking(tmp_path))
    assert state(folder) == before


def test_a_run_on_a_medium_that_cannot_be_written_is_shown(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", 12)
    for file in folder.iterdir():
        file.chmod(0o400)
    folder.chmod(0o500)
    try:
        asked_once(asking(tmp_path))
    finally:
        folder.chmod(0o700)


def test_a_run_that_is_watched_ends_as_one_that_is_not(tmp_path: Path) -> None:
    victims, folder = Victims(tmp_path), tmp_path / "seen" / "run"
    folder.parent.mkdir()
    assert victims.run(Plot(), *FLAGS, str(tmp_path / "alone")).code == 0
    watched = victims.start(Slow(), *FLAGS, str(folder))
    told: list[dict[str, Any]] = []
    while watched.process.is_alive():
        if (folder / "run.sqlite-wal").exists():
            client = asking(tmp_path / "seen")
            asked_once(client)
            told.append(client.get(f"{RUN}progress").json())
    assert watched.end().code == 0
    assert contents(folder) == contents(tmp_path / "alone")
    live = [one for one in told if one["live"]]
    assert live and live[0]["stage"] == "at work"
    done = [one["bars"][0]["done"] for one in told]
    assert done == sorted(done)
    last = asking(tmp_path / "seen").get(f"{RUN}progress").json()
    assert not last["live"] and last["stage"] == "finished"
    assert [bar["done"] for bar in last["bars"]] == [bar["of"] for bar in last["bars"]]


def test_a_run_that_was_killed_says_how_far_it_came(tmp_path: Path) -> None:
    assert Victims(tmp_path).run(Killed(20), *FLAGS, str(tmp_path / "run")).code == -signal.SIGKILL
    told = asking(tmp_path).get(f"{RUN}progress").json()
    assert not told["live"] and told["stage"].startswith("stopped before")
    asked_once(asking(tmp_path))


def test_asking_whether_a_folder_is_held_holds_nothing(tmp_path: Path) -> None:
    assert not at_work(tmp_path)
    command = [sys.executable, "-c", HOLDER, str(tmp_path / LOCK)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "1\n"
    assert at_work(tmp_path)
    process.communicate("\n", timeout=30)
    assert not at_work(tmp_path)
    descriptor = os.open(tmp_path / LOCK, os.O_RDWR)
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
