"""A purge leaves no word of what was said anywhere in the folder, and every rating, answer and count."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.answers import options
from tests.run.conftest import MakePlan, Opened
from vera_local.engine.seam import Request
from vera_local.errors import UserError
from vera_local.report.html.page import Choice, page
from vera_local.report.html.render import report_html
from vera_local.run import Watcher, judge_run, run, score_run
from vera_local.run import purging as module
from vera_local.run.exporting import Layout, export_run
from vera_local.run.purging import purge_run
from vera_local.run.reading import read_run
from vera_local.run.reported import record_of
from vera_local.run.stats import work_of
from vera_local.run.store import NAME, Store

Answering = Callable[..., Opened]

JUDGE = "smollm2-135m-instruct"

SECRET = "Qxv"
"""Part of every text that a model writes here, and of nothing else."""


def speaking(request: Request) -> str:
    return f"I said {SECRET} {request.sampling.seed}" if request.pattern is None else options(request)[0]


@pytest.fixture
async def told(tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher) -> Path:
    """A judged run with a report, exports and a log in its folder."""
    plan = make(judge=[JUDGE], judge_mode="reason", check_personas=True)
    await run(plan, answering(speaking), watcher)
    folder = plan.out
    (folder / "report.html").write_bytes(report_html(page(record_of(folder, plan.bundle), Choice())).encode())
    export_run(folder, plan.bundle, Layout.VERA_MH, folder / "sent")
    (folder / "engine.log").write_text(SECRET)
    for name in (f"{NAME}.broken-1", f".{NAME}.abc"):
        (folder / name).mkdir()
        (folder / name / NAME).write_text(SECRET)
    (folder / ".conversations.jsonl.abc").write_text(SECRET)
    with Store.open(folder) as store:
        store.begin(tuple(store.conversations()))
        store.end(store.heads()[0].id, store.conversation(store.heads()[0].id).ending, f"because {SECRET}")  # type: ignore[arg-type]
    return folder


def holding(folder: Path) -> set[str]:
    """The files with a word of what was said in them."""
    return {f.name for f in folder.rglob("*") if f.is_file() and SECRET.encode() in f.read_bytes()}


def numbers(folder: Path) -> list[object]:
    """All that a store holds but its texts, and the results."""
    with closing(sqlite3.connect(folder / NAME)) as db:
        asked = (
            "select id, place, persona, repeat, ending from conversations order by 1",
            "select conversation, turn, speaker, cut, prompt_tokens, output_tokens from messages order by 1, 2",
            "select conversation, judge, question, place, state, answer, evidence from verdicts order by 1, 4",
            "select * from ratings order by 1, 2, 3",
            "select * from usage",
        )
        stored = [db.execute(query).fetchall() for query in asked]
    return [*stored, *((folder / name).read_bytes() for name in ("results.csv", "questions.csv", "scores.json"))]


def contents(folder: Path) -> dict[str, object]:
    """Of each file; of the store its rows, since writing the same ones again counts up a number in its header."""
    files: dict[str, object] = {f.name: f.read_bytes() for f in folder.rglob("*") if f.is_file()}
    with closing(sqlite3.connect(folder / NAME)) as db:
        return files | {NAME: list(db.iterdump())}


async def test_no_word_is_left_and_every_number_is(told: Path) -> None:
    assert {NAME, "conversations.jsonl", "verdicts.csv", "report.html"} <= holding(told)
    before = numbers(told)
    purged = purge_run(told)
    assert holding(told) == set()
    assert numbers(told) == before
    assert not purged.left
    assert {f.name for f in purged.removed} >= {"conversations.jsonl", "report.html", "engine.log"}
    assert json.loads((told / "manifest.json").read_text())["purged"]["whole"] is True


async def test_what_reads_a_run_still_does(told: Path, make: MakePlan) -> None:
    bundle = make().bundle
    before, work = score_run(told, bundle), work_of(told)
    purge_run(told)
    after = score_run(told, bundle)
    assert after.scores == before.scores and after.replies == before.replies
    assert work_of(told) == work
    assert "[purged " in read_run(told, bundle, after.conversations[0].id, None)
    assert report_html(page(record_of(told, bundle), Choice()))
    assert holding(told) == set()


async def test_nothing_goes_on_in_it(told: Path, make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    purge_run(told)
    plan, asked = make(judge=[JUDGE], judge_mode="reason", check_personas=True), answering(speaking)
    for work in (run(plan, asked, watcher), judge_run(plan, asked, watcher)):
        with pytest.raises(UserError, match="was purged: what was said in it is gone"):
            await work
    assert not asked.engines


async def test_done_again_it_changes_nothing(told: Path) -> None:
    purge_run(told)
    before = contents(told)
    assert purge_run(told).removed == ()
    assert contents(told) == before


@pytest.mark.parametrize("stop", ["_empty", "_remove"])
async def test_stopped_in_between_it_is_closed_to_runs_and_goes_on(
    told: Path, make: MakePlan, answering: Answering, watcher: Watcher, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, stop, killed)
        with pytest.raises(KeyboardInterrupt):
            purge_run(told)
    with pytest.raises(UserError, match="was purged"):
        await judge_run(make(judge=[JUDGE], judge_mode="reason"), answering(speaking), watcher)
    purge_run(told)
    assert holding(told) == set()


async def test_a_reader_that_keeps_texts_in_the_file_is_told(told: Path) -> None:
    with closing(sqlite3.connect(told / NAME, isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select text from messages").fetchall()
        with pytest.raises(UserError, match="is locked by another program; close it there"):
            purge_run(told)
        assert json.loads((told / "manifest.json").read_text())["purged"]["whole"] is False
    purge_run(told)
    assert holding(told) == set()


async def test_two_purged_runs_are_not_taken_for_one(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    said = []
    for seed in (1, 2):
        plan = make(out=tmp_path / f"run{seed}", seed=seed, personas=1)
        await run(plan, answering(speaking), watcher)
        purge_run(plan.out)
        with Store.open(plan.out) as store:
            said.append([c.messages for c in store.conversations()])
    assert said[0] != said[1]


async def test_a_page_is_known_whatever_its_name(told: Path) -> None:
    page = (told / "report.html").read_bytes()
    (told / "shown").mkdir()
    mine = [told / "page.html", told / "shown" / "to the board", told / ".page.html.abc"]
    for file in mine:
        file.write_bytes(page)
    (told / "notes.html").write_bytes(b"<!doctype html><html>")
    (told / "elsewhere").symlink_to(told / "notes.html")
    purged = purge_run(told)
    assert holding(told) == set() and {*mine} <= {*purged.removed}
    assert {f.name for f in purged.left} == {"notes.html", "elsewhere"}


async def test_files_of_others_stay_and_are_named(told: Path) -> None:
    (told / "notes.txt").write_text("mine")
    (told / "sent" / "letter.txt").write_text("mine")
    assert {f.name for f in purge_run(told).left} == {"notes.txt", "letter.txt"}
    assert (told / "notes.txt").read_text() == "mine"


def test_a_folder_without_a_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no run"):
        purge_run(tmp_path)
