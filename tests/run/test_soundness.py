"""Rows of a store that SQLite reads and that mean nothing here: told in one sentence, and mended by recover."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.made_run import made_run
from vera_local.errors import UserError
from vera_local.run import score_run
from vera_local.run.evaluate import bundle_of_run
from vera_local.run.reading import read_run
from vera_local.run.recovering import recover_run
from vera_local.run.store import NAME, Store

ONE = "rowid = (select min(rowid) from {})"

CHANGES = {
    "a rating without its dimension": "delete from ratings where {ratings}",
    "a dimension of no rubric": "update ratings set dimension = 'x' where {ratings}",
    "a rating of no rubric": "update ratings set rating = 'Splendid' where {ratings}",
    "decided by what is no list": "update ratings set decided_by = '{{' where {ratings}",
    "a state that is none": "update verdicts set state = 'sure' where {verdicts}",
    "a mode that is none": "update verdicts set mode = 'dice' where {verdicts}",
    "a question of no rubric": "update verdicts set question = 'x' where {verdicts}",
    "an answer that no option has": "update verdicts set answer = 'Perhaps', confidence = null where {verdicts}",
    "confidence in other answers": "update verdicts set confidence = '{{\"x\": 1}}' where confidence is not null",
    "evidence that is no list": "update verdicts set evidence = '7' where evidence is not null",
    "a place that is no number": "update verdicts set place = '-1e999' where {verdicts}",
    "an ending that is none": "update conversations set ending = 'x' where {conversations}",
    "a speaker that is none": "update messages set speaker = 'x' where {messages}",
    "bytes for a text": "update messages set text = x'ff' where {messages}",
}


def changed(folder: Path, statement: str) -> None:
    tables = ("ratings", "verdicts", "conversations", "messages")
    with closing(sqlite3.connect(folder / NAME)) as db, db:
        assert db.execute(statement.format(**{table: ONE.format(table) for table in tables})).rowcount > 0


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_told_and_recover_mends_it(tmp_path: Path, change: str) -> None:
    run = made_run(tmp_path / "run", conversations=3, judges=("strict", "mild"))
    bundle = bundle_of_run(run)
    changed(run, CHANGES[change])
    with pytest.raises(UserError, match=r"run\.sqlite is damaged \(.+\); `vera-local recover "):
        score_run(run, bundle)
    assert recover_run(run).kept_at is not None
    score_run(run, bundle)
    assert "talk-2" in read_run(run, bundle, None, None)
    assert recover_run(run).kept_at is None


def test_a_mistake_of_the_program_is_not_put_down_to_the_store(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", conversations=1)
    with pytest.raises(KeyError), Store.open(run):
        raise KeyError("not of the store")


def test_a_description_of_tables_that_is_no_text_is_told(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", conversations=1)
    with closing(sqlite3.connect(run / NAME)) as db:
        db.execute("pragma journal_mode = delete")
    store = (run / NAME).read_bytes()
    (run / NAME).write_bytes(
        store.replace(b"create table conversations", b"create table c\x83nversations", 1).replace(
            b"CREATE TABLE conversations", b"CREATE TABLE c\x83nversations", 1
        )
    )
    with pytest.raises(UserError, match=r"run\.sqlite is damaged"):
        score_run(run, bundle_of_run(run))


@pytest.mark.parametrize("key", ["hardware", "versions", "network", "notes", "purged", "fingerprint"])
def test_a_part_of_a_manifest_that_is_none_is_told(tmp_path: Path, key: str) -> None:
    run = made_run(tmp_path / "run", conversations=1, score=False)
    begun = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    (run / "manifest.json").write_text(json.dumps(begun | {key: 1.5}), encoding="utf-8")
    with pytest.raises(UserError, match=r"manifest\.json: this manifest is of another version or not whole"):
        bundle_of_run(run)


def test_a_manifest_that_does_not_say_who_is_embedded_is_read(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", conversations=1)
    begun = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    del begun["identity"]["chatbot"]["embedded"]
    (run / "manifest.json").write_text(json.dumps(begun), encoding="utf-8")
    assert not score_run(run, bundle_of_run(run)).demonstration
