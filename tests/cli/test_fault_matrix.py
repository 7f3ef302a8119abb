"""Each fault at three random points of a run: one clear sentence, nothing lost, nothing twice, and the same end."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

import vera_local
from tests import faults
from tests.kept import Contents, contents, finished_seeds, must_be_the_same, must_hold
from tests.victims import Ended, Plot, Victims
from vera_local.engine.shortage import EMPTY
from vera_local.run.folder import LOCK, MANIFEST
from vera_local.run.store import NAME

SEED = 7
FLAGS = ("run", "--personas", "2", "--turns", "6", "--seed", str(SEED), "--out")
PAGE = 4096
ON = "the same command goes on from there"

NO_MEMORY = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when"


class Case(NamedTuple):
    """A fault: how it is done at a request, the exit code, and what has to be told."""

    plot: Callable[[int], Plot]
    code: int
    told: str = ""


CASES = {
    "engine process killed": Case(faults.Lost, 0, "opening the engines anew and asking again what was under way"),
    "no memory in the middle": Case(
        partial(faults.Lost, words=f"vLLM's engine process ended since {EMPTY}"),
        0,
        "memory ran out: set a smaller context",
    ),
    "no memory to open it again": Case(
        partial(faults.NoMemoryToOpen, written=NO_MEMORY), 2, "no memory for the KV cache: set a smaller max_num_seqs"
    ),
    "engine hangs": Case(faults.Hung, 0, "no engine replied for"),
    "read-only disk": Case(faults.ReadOnlyDisk, 2, "attempt to write a readonly database); see that it is whole and"),
    "store locked": Case(faults.LockedStore, 2, "is locked by another program; close it there and run the same"),
    "clock jumps": Case(faults.ClockJumps, 0),
    "SIGINT": Case(partial(faults.Signalled, number=signal.SIGINT), 130, ON),
    "SIGTERM": Case(partial(faults.Signalled, number=signal.SIGTERM), 130, ON),
    "SIGHUP": Case(partial(faults.Signalled, number=signal.SIGHUP), 130, ON),
    "SIGHUP under nohup": Case(partial(faults.UnderNohup, number=signal.SIGHUP), 0),
    "terminal closed": Case(faults.TerminalClosed, 130),
    "kill -9, which leaves a lock file": Case(faults.Killed, -signal.SIGKILL),
}


class Scene:
    """A run to be harmed, at a request drawn from one third of those that an undisturbed one makes."""

    def __init__(self, place: Path, calm: Path, moment: int) -> None:
        self.folder, self.calm, self.moment = place / "run", calm, moment
        self.victims = Victims(place)

    def run(self, plot: Plot | None = None, digest: str = "0123") -> Ended:
        ended = self.victims.run(plot or Plot(), *FLAGS, str(self.folder), digest=digest)
        assert "Traceback" not in ended.told
        return ended

    def fails(self, sentence: str, *, digest: str = "0123") -> None:
        """The command stops with this one sentence and exit code 2."""
        must_be_told(self.run(digest=digest), sentence)

    def goes_on(self, before: Contents) -> None:
        """The same command asks only what is missing, and ends as an undisturbed run does."""
        assert self.run().code == 0
        asked = self.victims.seeds()
        assert len(asked) == len(set(asked)) and not finished_seeds(before, SEED) & set(asked)
        must_hold(self.folder, before)
        must_be_the_same(self.folder, self.calm)

    def recovered(self) -> None:
        """`vera-local recover` saves what can be read."""
        ended = self.victims.run(Plot(), "recover", str(self.folder))
        assert ended.code == 0, ended.told


def must_be_told(ended: Ended, sentence: str) -> None:
    assert ended.code == 2 and sentence in ended.told
    assert ended.told.count("vera-local: ") == 1


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """The folder of a run that nothing happens to, and how many requests it made."""
    folder = tmp_path_factory.mktemp("calm") / "run"
    victims = Victims(folder.parent)
    assert victims.run(Plot(), *FLAGS, str(folder)).code == 0
    return folder, len(victims.seeds())


@pytest.fixture
def scene(tmp_path: Path, undisturbed: tuple[Path, int], request: pytest.FixtureRequest) -> Scene:
    calm, requests = undisturbed
    draw, third = random.Random(request.node.name), request.node.callspec.params["third"]
    return Scene(tmp_path, calm, 1 + int(requests * (third + draw.random()) / 3))


thirds = pytest.mark.parametrize("third", range(3))


@pytest.mark.parametrize("fault", CASES)
@thirds
def test_a_run_goes_on_after(scene: Scene, fault: str, third: int) -> None:
    case = CASES[fault]
    ended = scene.run(case.plot(scene.moment))
    assert ended.code == case.code and case.told in ended.told
    if case.code == 2:
        must_be_told(ended, case.told)
    assert (scene.folder / LOCK).exists()
    assert all(0 <= seconds < 600 for seconds in durations(scene.folder))
    scene.goes_on(contents(scene.folder))


def durations(folder: Path) -> list[float]:
    """What the run's account says that sessions and stages took, in seconds."""
    with closing(sqlite3.connect(folder / NAME)) as db:
        took = "select wall_s, busy_s from sessions union all select wall_s, busy_s from stages"
        return [seconds for row in db.execute(took) for seconds in row]


def test_only_dates_that_others_wrote_are_held_against_the_clock() -> None:
    """The one that a server names, and the age of folders that killed workers left."""
    root = Path(vera_local.__file__).parent
    asking = {str(file.relative_to(root)) for file in root.rglob("*.py") if "time.time" in file.read_text()}
    assert asking == {"chatbot/web.py", "run/cluster/scratch.py"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system can only be mounted by root, where mounting is allowed")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@thirds
def test_a_run_goes_on_after_a_full_disk(scene: Scene, disk: Path, third: int) -> None:
    scene.folder = disk / "run"
    ended = scene.run(faults.FullDisk(scene.moment))
    must_be_told(ended, "No space is left to write")
    before = contents(scene.folder)
    scene.fails("No space is left to write")
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
    must_hold(scene.folder, before)
    scene.goes_on(before)


@thirds
def test_a_second_run_on_the_folder_is_refused_and_disturbs_nothing(scene: Scene, tmp_path: Path, third: int) -> None:
    here, on = tmp_path / "here", tmp_path / "on"
    first = scene.victims.start(faults.Paused(scene.moment, here, on), *FLAGS, str(scene.folder))
    while not here.exists():
        assert first.process.is_alive()
        time.sleep(0.01)
    for again in (FLAGS, ("judge",), ("recover",), ("score",)):
        ended = scene.victims.run(Plot(), *again, str(scene.folder))
        must_be_told(ended, "is in use by another process; wait for it or name another")
    on.touch()
    assert first.end().code == 0
    must_be_the_same(scene.folder, scene.calm)


@pytest.fixture
def stopped(scene: Scene) -> Contents:
    """What was kept of a run that was killed; its folder lies there as if it had just been closed."""
    assert scene.run(faults.Killed(scene.moment)).code == -signal.SIGKILL
    return contents(scene.folder)


@thirds
@pytest.mark.parametrize("table", ["messages", "verdicts", "conversations"])
def test_a_run_goes_on_after_its_store_is_damaged(scene: Scene, stopped: Contents, third: int, table: str) -> None:
    file = scene.folder / NAME
    with closing(sqlite3.connect(file)) as db:
        page = db.execute("select rootpage from sqlite_master where name = ?", (table,)).fetchone()[0]
    with file.open("r+b") as store:
        store.seek((page - 1) * PAGE)
        store.write(random.Random(third).randbytes(PAGE))
    damaged_store_is_told_and_saved(scene)


@thirds
def test_a_run_goes_on_after_its_store_is_cut_short(scene: Scene, stopped: Contents, third: int) -> None:
    file = scene.folder / NAME
    os.truncate(file, file.stat().st_size * (third + 1) // 4)
    damaged_store_is_told_and_saved(scene)


def damaged_store_is_told_and_saved(scene: Scene) -> None:
    damaged = (scene.folder / NAME).read_bytes()
    scene.fails(f"; `vera-local recover {scene.folder}` saves what can be read of it")
    assert (scene.folder / NAME).read_bytes() == damaged
    scene.recovered()
    assert next(scene.folder.glob("*.broken-1")).joinpath(NAME).read_bytes() == damaged
    scene.goes_on(contents(scene.folder))


@thirds
def test_a_run_goes_on_after_its_manifest_was_missing(scene: Scene, stopped: Contents, third: int) -> None:
    manifest, aside = scene.folder / MANIFEST, scene.folder.parent / "aside"
    shutil.move(manifest, aside)
    scene.fails("manifest.json is missing: it says what made the run, which nothing else can tell; restore it from a")
    shutil.move(aside, manifest)
    scene.goes_on(stopped)


@thirds
def test_a_model_that_changed_in_between_is_refused(scene: Scene, stopped: Contents, third: int) -> None:
    scene.fails("model.safetensors of smollm2-135m-instruct is not the file that the run began with", digest="4567")
    scene.goes_on(stopped)
