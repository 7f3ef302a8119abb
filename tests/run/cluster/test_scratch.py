"""What killed workers left is removed after a while; nothing else is."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from vera_local.run.cluster.scratch import KEPT_SECONDS, PREFIX, new_folder


def dead() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def made(place: Path, name: str, age: float) -> Path:
    folder = place / name
    folder.mkdir()
    (folder / "engine.log").touch()
    then = folder.stat().st_mtime - age
    os.utime(folder, (then, then))
    return folder


def test_only_old_folders_of_dead_processes_go(tmp_path: Path) -> None:
    gone = dead()
    old = made(tmp_path, f"{PREFIX}{gone}-a", KEPT_SECONDS + 60)
    kept = [
        made(tmp_path, f"{PREFIX}{gone}-b", KEPT_SECONDS - 60),
        made(tmp_path, f"{PREFIX}{os.getpid()}-c", KEPT_SECONDS + 60),
        made(tmp_path, f"{PREFIX}notes", KEPT_SECONDS + 60),
        made(tmp_path, f"other-{gone}-d", KEPT_SECONDS + 60),
    ]
    mine = new_folder(tmp_path)
    assert not old.exists()
    assert all(folder.exists() for folder in kept)
    assert stat.S_IMODE(mine.stat().st_mode) == 0o700
    assert mine.name.startswith(f"{PREFIX}{os.getpid()}-")


def test_what_is_of_no_use_goes_at_once(tmp_path: Path) -> None:
    gone, kept = made(tmp_path, f"ray-{dead()}-a", 1), made(tmp_path, f"ray-{os.getpid()}-b", 1)
    mine = new_folder(tmp_path, "ray-", kept=0)
    assert not gone.exists()
    assert kept.exists() and mine.exists()
