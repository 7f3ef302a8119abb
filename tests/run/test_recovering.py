"""Whatever breaks in a store, what can be read of it is saved, nothing is made up, and the run ends as undisturbed."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.answers import at_random
from tests.kept import must_be_the_same
from tests.run.conftest import MakePlan, Opened
from vera_local.conversation import Message, Speaker
from vera_local.engine.seam import Usage
from vera_local.errors import UserError
from vera_local.run import Watcher, run, score_run
from vera_local.run.evaluate import begun
from vera_local.run.recovering import recover_run
from vera_local.run.store import NAME, Store
from vera_local.simulate import Said

Answering = Callable[..., Opened]
PAGE = 4096


@pytest.fixture
async def calm(tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher) -> Path:
    plan = make(out=tmp_path / "calm", personas=6, turns=6, judge=["smollm2-135m-instruct"])
    await run(plan, answering(at_random), watcher)
    return plan.out


@pytest.fixture
def broken(tmp_path: Path, calm: Path) -> Path:
    """A copy of it, to be broken."""
    return Path(shutil.copytree(calm, tmp_path / "run"))


def overwrite(folder: Path, page: int) -> None:
    with (folder / NAME).open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(random.Random(page).randbytes(PAGE))


def number_of_pages(folder: Path) -> int:
    return (folder / NAME).stat().st_size // PAGE


@pytest.mark.parametrize("seed", range(8))
async def test_a_run_with_broken_pages_is_saved_and_ends_the_same(
    broken: Path, calm: Path, make: MakePlan, answering: Answering, watcher: Watcher, seed: int
) -> None:
    # The first page tells of all others; without it nothing can be read.
    page = random.Random(seed).randrange(2, number_of_pages(broken) + 1)
    overwrite(broken, page)
    damaged = (broken / NAME).read_bytes()
    recovered = recover_run(broken)
    if recovered.kept_at is not None:
        assert (recovered.kept_at / NAME).read_bytes() == damaged
    assert recover_run(broken).kept_at is None, "it is whole now"
    plan = make(out=broken, personas=6, turns=6, judge=["smollm2-135m-instruct"])
    await run(plan, answering(at_random), watcher)
    must_be_the_same(broken, calm)


async def test_a_truncated_store_is_saved(
    broken: Path, calm: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    with (broken / NAME).open("r+b") as file:
        file.truncate((number_of_pages(broken) * 2 // 3) * PAGE)
    plan = make(out=broken, personas=6, turns=6, judge=["smollm2-135m-instruct"])
    with pytest.raises(UserError, match="vera-local recover"):
        await run(plan, answering(at_random), watcher)
    assert recover_run(broken).kept_at is not None
    await run(plan, answering(at_random), watcher)
    must_be_the_same(broken, calm)


@pytest.mark.parametrize("stop", ["keep", "_make_ready", "_put_in_place"])
def test_stopped_in_between_it_begins_again(broken: Path, monkeypatch: pytest.MonkeyPatch, stop: str) -> None:
    overwrite(broken, 3)
    damaged = (broken / NAME).read_bytes()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"vera_local.run.recovering.{stop}", killed)
        with pytest.raises(KeyboardInterrupt):
            recover_run(broken)
    assert (broken / NAME).read_bytes() == damaged
    kept = recover_run(broken).kept_at
    assert kept is not None and (kept / NAME).read_bytes() == damaged
    assert recover_run(broken).kept_at is None
    assert not [f.name for f in broken.iterdir() if f.name.startswith(f".{NAME}") or "recovered" in f.name]


@pytest.fixture
def stopped(broken: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, of which a recovery was stopped before its last step."""
    overwrite(broken, 3)
    with monkeypatch.context() as patch:
        patch.setattr("vera_local.run.recovering._put_in_place", lambda folder: None)
        recover_run(broken)
    return broken


async def test_until_a_recovery_has_ended_nobody_reads_or_writes_the_old_store(
    stopped: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make(out=stopped, personas=6, turns=6, judge=["smollm2-135m-instruct"])
    told = r"not yet in its place\); `vera-local recover "
    with pytest.raises(UserError, match=told):
        await run(plan, answering(at_random), watcher)
    with pytest.raises(UserError, match=told):
        Store.look(stopped)
    recover_run(stopped)
    await run(plan, answering(at_random), watcher)


@pytest.mark.parametrize("whole", [True, False])
def test_a_store_that_was_put_there_since_a_recovery_was_stopped_is_not_lost(
    stopped: Path, calm: Path, whole: bool
) -> None:
    shutil.copyfile(calm / NAME, stopped / NAME)
    if not whole:
        overwrite(stopped, 4)
    newer = (stopped / NAME).read_bytes()
    kept = recover_run(stopped).kept_at
    assert (stopped / NAME if kept is None else kept / NAME).read_bytes() == newer
    assert (kept is None) == whole
    assert recover_run(stopped).kept_at is None
    with Store.look(stopped):
        pass


@pytest.fixture
def killed(tmp_path: Path, make: MakePlan) -> Path:
    """The folder of a run that was killed with nearly all in the store's log: twelve messages, and the table's own."""
    plan = make(out=tmp_path / "killed", personas=6, turns=6, judge=["smollm2-135m-instruct"])
    with begun(plan, judge=True) as store:
        for head in store.heads()[:2]:
            for turn in range(1, 7):
                said = Said(Message(Speaker.PERSONA if turn % 2 else Speaker.CHATBOT, "word"), Usage(1, 0, 1), False)
                store.add_message(head.id, turn, said)
        return Path(shutil.copytree(plan.out, tmp_path / "run"))


def messages(folder: Path) -> int:
    with closing(sqlite3.connect(folder / NAME)) as db:
        return int(db.execute("select count(*) from messages").fetchone()[0])


def test_a_log_that_a_kill_left_is_whole(killed: Path) -> None:
    assert recover_run(killed).kept_at is None
    assert messages(killed) == 12


def test_a_log_of_which_a_bit_is_wrong_is_told_kept_and_saved_up_to_there(killed: Path, make: MakePlan) -> None:
    log = killed / f"{NAME}-wal"
    content = bytearray(log.read_bytes())
    content[len(content) * 4 // 5] ^= 4
    log.write_bytes(content)
    before = {f: f.read_bytes() for f in killed.rglob("*") if f.is_file()}
    for opening in (Store.open, Store.look):
        with pytest.raises(UserError, match=r"commits lie behind it\); `vera-local recover "):
            opening(killed)
    assert {f: f.read_bytes() for f in killed.rglob("*") if f.is_file()} == before
    recovered = recover_run(killed)
    assert recovered.kept_at is not None and (recovered.kept_at / log.name).read_bytes() == content
    assert recovered.dropped > 0 and 0 < messages(killed) <= 12 - recovered.dropped
    assert recover_run(killed).kept_at is None


def test_where_all_of_a_damaged_log_is_in_the_store_already_nothing_is_lost(killed: Path) -> None:
    log = killed / f"{NAME}-wal"
    content = bytearray(log.read_bytes())
    with closing(sqlite3.connect(killed / NAME)) as db:
        db.execute("pragma wal_checkpoint(passive)")
        content[len(content) // 2] ^= 4
        store = (killed / NAME).read_bytes()
    (killed / NAME).write_bytes(store)
    log.write_bytes(content)
    assert recover_run(killed).kept_at is not None
    assert messages(killed) == 12


def test_what_a_kill_left_of_a_recovery_is_cleared_away(broken: Path) -> None:
    (broken / f".{NAME}.abc").mkdir()
    (broken / f".{NAME}.abc" / NAME).write_text("a copy")
    assert recover_run(broken).kept_at is None
    assert not (broken / f".{NAME}.abc").exists()


def test_a_damaged_store_is_kept_under_a_number_of_its_own(broken: Path) -> None:
    for name in ("2", "of-mine"):
        (broken / f"{NAME}.broken-{name}").mkdir()
        (broken / f"{NAME}.broken-{name}" / "held").touch()
    overwrite(broken, 3)
    assert recover_run(broken).kept_at == broken / f"{NAME}.broken-3"


def test_a_new_store_beside_which_no_damaged_one_is_kept_is_made_again(broken: Path) -> None:
    (broken / f"{NAME}.recovered").write_bytes(b"of nobody")
    overwrite(broken, 3)
    damaged = (broken / NAME).read_bytes()
    kept = recover_run(broken).kept_at
    assert kept is not None and (kept / NAME).read_bytes() == damaged
    assert recover_run(broken).kept_at is None


def test_a_whole_store_is_left_alone(broken: Path) -> None:
    before = {f: f.read_bytes() for f in broken.rglob("*") if f.is_file()}
    assert recover_run(broken).kept_at is None
    assert {f: f.read_bytes() for f in broken.rglob("*") if f.is_file()} == before


@pytest.mark.parametrize("content", [b"", b"no store at all", bytes(PAGE)])
def test_where_nothing_can_be_read_that_is_told_and_nothing_changed(
    broken: Path, make: MakePlan, content: bytes
) -> None:
    (broken / NAME).write_bytes(content)
    before = {f: f.read_bytes() for f in broken.rglob("*") if f.is_file()}
    with pytest.raises(UserError, match=r"Nothing can be read of .*import"):
        recover_run(broken)
    with pytest.raises(UserError, match=NAME):
        score_run(broken, make().bundle)
    assert {f: f.read_bytes() for f in broken.rglob("*") if f.is_file()} == before


def test_without_a_manifest_it_says_what_is_needed(broken: Path) -> None:
    (broken / "manifest.json").unlink()
    with pytest.raises(UserError, match=r"manifest.json is missing: it says what made the run"):
        recover_run(broken)


def test_a_store_of_a_newer_program_is_left_to_it(broken: Path) -> None:
    with closing(sqlite3.connect(broken / NAME)) as db:
        db.execute("pragma user_version = 99")
    with pytest.raises(UserError, match="newer version of this program"):
        recover_run(broken)
