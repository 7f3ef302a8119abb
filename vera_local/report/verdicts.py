"""Verdicts as a table and as files: what each judge answered, on what grounds, and how sure it was. Knows no judge."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from vera_local.report.files import write_long_table
from vera_local.score.framing import framed_parts

SCHEMA: Final = pl.Schema(
    {
        "conversation": pl.String(),
        "judge": pl.String(),
        "question": pl.String(),
        "place": pl.Int64(),
        "state": pl.String(),
        "answer": pl.String(),
        "mode": pl.String(),
        "evidence": pl.String(),
        "rationale": pl.String(),
        "probability": pl.Float64(),
        "mass": pl.Float64(),
        "doubt": pl.String(),
        "left_out": pl.String(),
        "detail": pl.String(),
    }
)
"""Columns of a frame of verdicts, in order."""


class VerdictRow(NamedTuple):
    """One verdict. `place` counts from 1 in the judge's path; `answer` None: there is none, and `state` says why.

    `evidence`: the turns that the judge named (numbers from 1), none at all where it was not asked. `probability` is
    that of the answer and `mass` that of all options together, from 0 to 1, None where they were not read; `doubt`
    says why a person should look at the answer, `left_out` what the judge was not shown, `detail` why there is no
    answer.
    """

    conversation: str
    judge: str
    question: str
    place: int
    state: str
    answer: str | None
    mode: str
    evidence: tuple[int, ...] | None
    rationale: str
    probability: float | None
    mass: float | None
    doubt: str
    left_out: str
    detail: str


def write_verdicts(folder: Path, rows: Iterable[VerdictRow]) -> None:
    """Write verdicts.parquet and verdicts.csv, one row per verdict in the order given, holding some at a time.

    Evidence is "3 7", null where it was not asked. Raises UserError where a file cannot be written.
    """
    write_long_table(folder, "verdicts", framed_parts(map(_cells, rows), SCHEMA))


def _cells(row: VerdictRow) -> tuple[object, ...]:
    evidence = None if row.evidence is None else " ".join(map(str, row.evidence))
    at = row._fields.index("evidence")
    return (*row[:at], evidence, *row[at + 1 :])
