from __future__ import annotations

import csv
import stat
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from vera_local.report.verdicts import SCHEMA, VerdictRow, write_verdicts
from vera_local.score import framing

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
    assert pl.read_parquet(tmp_path / "verdicts.parquet").equals(pl.DataFrame(schema=SCHEMA))


def test_a_long_table_is_that_of_a_short_one_gone_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [SURE, DOUBTED, MISSING, MISSING._replace(detail=""), SURE._replace(rationale="\n", answer="")]
    write_verdicts(tmp_path, rows)
    whole = (tmp_path / "verdicts.csv").read_bytes(), pl.read_parquet(tmp_path / "verdicts.parquet")
    monkeypatch.setattr(framing, "PART", 2)
    write_verdicts(tmp_path, rows)
    assert (tmp_path / "verdicts.csv").read_bytes() == whole[0]
    assert pl.read_parquet(tmp_path / "verdicts.parquet").equals(whole[1])
    assert {f.name for f in tmp_path.iterdir()} == {"verdicts.csv", "verdicts.parquet"}
    assert {stat.S_IMODE(f.stat().st_mode) for f in tmp_path.iterdir()} == {0o600}


def test_rows_are_taken_as_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than a part of them is ever held."""
    monkeypatch.setattr(framing, "PART", 10)
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    most = 0

    class Text(str):
        __slots__ = ("__weakref__",)

    def rows() -> Iterator[VerdictRow]:
        nonlocal most
        for n in range(100):
            alive.add(text := Text(f"reason {n}"))
            most = max(most, len(alive))
            yield SURE._replace(rationale=text)

    write_verdicts(tmp_path, rows())
    assert most <= 20
    assert pl.read_parquet(tmp_path / "verdicts.parquet").height == 100
