from __future__ import annotations

import csv
from pathlib import Path

import polars as pl

from vera_local.report.verdicts import SCHEMA, VerdictRow, uncertain, verdicts_frame, write_verdicts

SURE = VerdictRow("c1", "a:reason", "7", 1, "answered", "Yes", "reason", (3, 7), 'So, "it"\nis.', 0.9, 0.95, "", "", "")
DOUBTED = SURE._replace(question="8", place=2, evidence=(), rationale="", doubt="near tie, 0.05 apart")
MISSING = VerdictRow("c2", "b", "7", 1, "overflow", None, "direct", None, "", None, None, "", "turns 3 to 9", "no room")


def test_files_hold_every_column_and_keep_not_asked_apart_from_none_named(tmp_path: Path) -> None:
    write_verdicts(tmp_path, [SURE, DOUBTED, MISSING])
    frame = pl.read_parquet(tmp_path / "verdicts.parquet")
    assert frame.schema == SCHEMA
    assert frame["evidence"].to_list() == ["3 7", "", None]
    with (tmp_path / "verdicts.csv").open(encoding="utf-8", newline="") as file:
        first, second, third = csv.DictReader(file)
    assert list(first) == list(VerdictRow._fields) == list(SCHEMA)
    assert (first["rationale"], first["evidence"], first["probability"]) == ('So, "it"\nis.', "3 7", "0.9")
    assert second["doubt"] == "near tie, 0.05 apart"
    assert (third["state"], third["answer"], third["mass"], third["left_out"]) == ("overflow", "", "", "turns 3 to 9")
    assert third["detail"] == "no room"
    assert pl.read_csv(tmp_path / "verdicts.csv", schema=SCHEMA).equals(frame)


def test_no_verdicts_make_empty_tables(tmp_path: Path) -> None:
    write_verdicts(tmp_path, [])
    assert pl.read_parquet(tmp_path / "verdicts.parquet").equals(verdicts_frame([]))


def test_doubts_are_counted_by_judge() -> None:
    assert uncertain([SURE, DOUBTED, DOUBTED, MISSING]) == {"a:reason": 2}
    assert uncertain([SURE, MISSING]) == {}
