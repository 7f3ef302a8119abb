from __future__ import annotations

import csv
import errno
import json
import os
from dataclasses import asdict
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.errors import UserError
from vera_local.report import Instrument, write_file, write_results, write_transcripts
from vera_local.report.files import write_frame
from vera_local.score import (
    QUESTIONS,
    SCHEMA,
    TIDY,
    Put,
    Rating,
    Scale,
    Scores,
    questions_frame,
    ratings_frame,
    score,
    score_by_judge,
)

SCALE = Scale(("good", "fair", "None"), "Not Relevant", ("Warmth, care", 'The "end"'), ("None", "Low"))
FRAME = ratings_frame(
    [
        Rating("c1", "None", "None", 1, "j", "Warmth, care", None),
        Rating("c1", "None", "None", 1, "j", 'The "end"', "None"),
        Rating("c2", "Zoë\nLee", "Low", 2, "j", "Warmth, care", "Not Relevant"),
        Rating("c2", "Zoë\nLee", "Low", 2, "j", 'The "end"', "good"),
    ]
)
BUNDLE = Instrument("try_out", "0.1.0", "Risk")
JURIES = {"jury": {"members": ["a", "b"], "rule": "in words"}}
CARDS = {"a": {"accuracy": 0.5, "below_baseline": True}, "b": None}
QUESTIONS_ASKED = questions_frame(
    [
        Put("c1", "None", "j", "q", "No"),
        Put("c1", "None", "j", "r", "Yes, and", 'The "end"', "None", "high"),
        Put("c2", "Zoë\nLee", "j", "q", None, "Warmth, care", None),
    ]
)


def write(folder: Path, frame: pl.DataFrame = FRAME) -> None:
    asked = QUESTIONS_ASKED if frame.height else QUESTIONS_ASKED.clear()
    write_results(folder, frame, asked, score_by_judge(frame, SCALE, questions=asked), BUNDLE, JURIES, CARDS)


def test_csv_keeps_unrated_apart_from_words(tmp_path: Path) -> None:
    write(tmp_path)
    assert pl.read_csv(tmp_path / "results.csv", schema=SCHEMA).equals(FRAME)
    with (tmp_path / "results.csv").open(newline="", encoding="utf-8") as file:
        assert [line["rating"] for line in csv.DictReader(file)] == ["", "None", "Not Relevant", "good"]


@pytest.mark.parametrize("frame", [FRAME, FRAME.clear()], ids=["rows", "no rows"])
def test_parquet_and_csv_round_trip(tmp_path: Path, frame: pl.DataFrame) -> None:
    write(tmp_path, frame)
    assert pl.read_parquet(tmp_path / "results.parquet").equals(frame)
    assert pl.read_parquet(tmp_path / "results.parquet").schema == SCHEMA
    assert pl.read_csv(tmp_path / "results.csv", schema=SCHEMA).equals(frame)


def test_scores_json_says_what_made_it_and_reads_back(tmp_path: Path) -> None:
    write(tmp_path)
    content = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    assert (content["schema"], content["bundle"], list(content["judges"])) == (2, asdict(BUNDLE), ["j"])
    assert content["cards"] == CARDS
    assert content["intervals"] == {"level": 0.95, "draws": 2000, "seed": 0, "clusters": "personas", "few_below": 10}
    scores = Scores.model_validate_json(json.dumps(content["judges"]["j"]))
    assert scores == score(FRAME, SCALE, questions=QUESTIONS_ASKED)


def test_questions_and_scores_round_trip(tmp_path: Path) -> None:
    write(tmp_path)
    for name, schema in (("questions", QUESTIONS), ("scores", TIDY)):
        table = pl.read_parquet(tmp_path / f"{name}.parquet")
        assert table.height and table.schema == schema
        assert pl.read_csv(tmp_path / f"{name}.csv", schema=schema).equals(table)
    assert pl.read_parquet(tmp_path / "questions.parquet").equals(QUESTIONS_ASKED)


def test_no_data_is_null_in_scores_json(tmp_path: Path) -> None:
    write(tmp_path, FRAME.filter(pl.col("rating").is_null()))
    overall = json.loads((tmp_path / "scores.json").read_text())["judges"]["j"]["overall"]
    assert overall["vera_score"] is None
    assert set(overall["percentages"].values()) == {None}


def test_files_are_for_the_owner_alone_and_replace_older_ones(tmp_path: Path) -> None:
    write(tmp_path, FRAME.clear())
    write(tmp_path)
    write_transcripts(tmp_path, [])
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    tables = [f"{name}.{kind}" for name in ("results", "questions", "scores") for kind in ("parquet", "csv")]
    assert modes == dict.fromkeys([*tables, "scores.json", "conversations.jsonl"], 0o600)
    assert pl.read_parquet(tmp_path / "results.parquet").height == FRAME.height


def test_transcripts_hold_turns_speakers_and_text(tmp_path: Path) -> None:
    said = (Message(Speaker.PERSONA, " hi\n\nthere "), Message(Speaker.CHATBOT, "user: “hello”"))
    going = Conversation("c2", "None", 2)
    write_transcripts(tmp_path, [Conversation("c1", "Zoë", 1, said, Ending.PERSONA), going])
    first, second = map(json.loads, (tmp_path / "conversations.jsonl").read_text(encoding="utf-8").splitlines())
    assert first == {
        "id": "c1",
        "persona": "Zoë",
        "repeat": 1,
        "ending": "persona",
        "messages": [
            {"turn": 1, "speaker": "persona", "text": " hi\n\nthere "},
            {"turn": 2, "speaker": "chatbot", "text": "user: “hello”"},
        ],
    }
    assert second == {"id": "c2", "persona": "None", "repeat": 2, "ending": None, "messages": []}


@settings(deadline=None)
@given(st.lists(st.text(st.characters(codec=None)) | st.sampled_from(["\u2028", "\x85", "\ud83d", "\\ud83d", "\r"])))
def test_any_text_stays_on_its_line(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("any")
    write_transcripts(folder, [Conversation("c", "P", 1, (Message(Speaker.CHATBOT, text),)) for text in texts])
    lines = (folder / "conversations.jsonl").read_bytes().decode().splitlines()
    assert [json.loads(line)["messages"][0]["text"] for line in lines] == texts


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.ENOSPC, "No space is left to write {}: free some and run the same command again."),
        (errno.EDQUOT, "No space is left to write {}: free some and run the same command again."),
        (errno.EACCES, "Cannot write {} (Permission denied): name an existing folder that you may write to."),
        (errno.EIO, "Cannot write {} (Input/output error): name an existing folder that you may write to."),
    ],
)
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: str
) -> None:
    path = tmp_path / "scores.json"
    write_file(path, b"old")

    def fail(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UserError) as caught:
        write_file(path, b"new")
    assert str(caught.value) == told.format(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_real_full_disk_is_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    monkeypatch.setattr("tempfile.mkstemp", lambda **_: (os.open(full, os.O_WRONLY), str(tmp_path / "gone")))
    with pytest.raises(UserError, match="No space is left"):
        write_file(tmp_path / "a", b"x")
    for suffix in ("csv", "parquet"):
        paths = {name: tmp_path / "a" if name == suffix else None for name in ("csv", "parquet")}
        with pytest.raises(UserError, match="No space is left"):
            write_frame(FRAME, paths["csv"], paths["parquet"])


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file or directory"):
        write(tmp_path / "nowhere")


def test_a_folder_that_is_not_writable_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("this user may write everywhere")
        with pytest.raises(UserError, match="Permission denied"):
            write_transcripts(tmp_path, [])
    finally:
        tmp_path.chmod(0o700)
