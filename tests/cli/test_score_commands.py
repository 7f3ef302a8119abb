"""score, pool and compare on runs of the command line itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from vera_local.report.comparison_files import CHANGED, COMPARED
from vera_local.score import TIDY

Command = Callable[..., int]


@pytest.fixture
def runs(command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> tuple[Path, Path]:
    """Two runs of one chatbot, by different seeds; the first with two judges."""
    for name, seed in (("a", "1"), ("b", "2")):
        out = tmp_path / name
        assert command("run", "--personas", "8", "--turns", "2", "--seed", seed, "--out", out) == 0
    assert command("judge", tmp_path / "a", "--judge", "qwen3-8b") == 0
    capfd.readouterr()
    return tmp_path / "a", tmp_path / "b"


def test_score_by_a_column_with_intervals_and_a_table(
    command: Command, runs: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    paper = tmp_path / "paper.md"
    assert command("score", runs[1], "--by", "Age", "--by", "Gender", "--intervals", "--markdown", paper) == 0
    out = capfd.readouterr().out
    for word in ("95 % intervals", "by Age", "by Gender", "Intervals by Age", "What decided the ratings", "18-29"):
        assert word in out
    assert "| Age | Dimension | n |" in paper.read_text(encoding="utf-8")
    told = json.loads((runs[1] / "scores.json").read_text(encoding="utf-8"))
    assert list(told["judges"]["smollm2-135m-instruct"]["by"]) == ["Age", "Gender"]
    scores = pl.read_parquet(runs[1] / "scores.parquet")
    assert scores.schema == TIDY
    assert {"Age", "Gender", "Short Current Suicide Risk Level", None} == set(scores["group_column"])


def test_decisions_name_questions_that_were_asked(command: Command, runs: tuple[Path, Path]) -> None:
    questions = pl.read_parquet(runs[1] / "questions.parquet")
    told = json.loads((runs[1] / "scores.json").read_text(encoding="utf-8"))
    decisions = told["judges"]["smollm2-135m-instruct"]["decisions"]
    assert decisions
    for one in decisions:
        its = questions.filter(pl.col("question") == one["question"])
        assert one["asked"] == its["conversation"].n_unique()
        assert set(one["examples"]) <= set(its["conversation"])
        if one["rating"] in ("Suboptimal", "High Potential for Harm"):
            assert one["severity"] in ("medium", "high")


def test_an_unknown_column_is_told_with_those_there_are(
    command: Command, runs: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    assert command("score", runs[1], "--by", "Ages") == 2
    err = capfd.readouterr().err
    assert "--by Ages: there is no such persona column; name one of: Name, Age, Gender" in err
    assert len(err.strip().splitlines()) == 1


def test_pool_and_compare(
    command: Command, runs: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pool, paper, table = tmp_path / "pool", tmp_path / "paper.md", tmp_path / "table.csv"
    assert command("pool", *runs, "--out", pool) == 2
    assert "cannot be pooled" in capfd.readouterr().err
    assert command("pool", *runs, "--out", pool, "--force", "--by", "Age", "--json") == 0
    told = json.loads(capfd.readouterr().out)
    assert told["judges"]["smollm2-135m-instruct"]["conversations"] == 16
    assert told["judges"]["smollm2-135m-instruct"]["personas"] == 8
    assert len(told["forced"]) == 2
    files = ("--markdown", paper, "--csv", table, "--parquet", tmp_path / "table.parquet")
    assert command("compare", *runs, *files) == 0
    out = capfd.readouterr().out
    assert "A: a, chatbot smollm2-135m-instruct" in out
    assert "Not compared, for they have not rated every run: jury, qwen3-8b." in out
    assert "- Bundle: suicide_risk" in paper.read_text(encoding="utf-8")
    frame = pl.read_parquet(tmp_path / "table.parquet")
    assert frame.schema == COMPARED and frame.height > 20
    assert frame.equals(pl.read_csv(table, schema=COMPARED))
    assert command("compare", pool, runs[1], "--json") == 0
    assert list(json.loads(capfd.readouterr().out)["sides"]) == ["pool", "b"]


def test_compare_the_judges_of_a_run(
    command: Command, runs: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    paper, table = tmp_path / "paper.md", tmp_path / "table.csv"
    files = ("--markdown", paper, "--csv", table, "--parquet", tmp_path / "table.parquet")
    assert command("compare", runs[0], *files) == 0
    out = capfd.readouterr().out
    assert "smollm2-135m-instruct against qwen3-8b" in out
    assert "jury against qwen3-8b" in out
    assert pl.read_parquet(tmp_path / "table.parquet").equals(pl.read_csv(table, schema=CHANGED))
    assert "confusion" in table.read_text(encoding="utf-8")
    assert "### jury against qwen3-8b" in paper.read_text(encoding="utf-8")
    assert command("compare", runs[0], "--judge", "jury", "--judge", "qwen3-8b", "--json") == 0
    (pair,) = json.loads(capfd.readouterr().out)["pairs"]
    assert (pair["first"], pair["second"], pair["changes"]["conversations"]) == ("jury", "qwen3-8b", 8)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("compare", "b"), "has one judge"),
        (("compare", "b", "--force"), "--force is for runs that differ"),
        (("compare", "a", "a"), "is named twice"),
        (("compare", "a", "b", "--judge", "nobody"), "--judge nobody"),
        (("compare", "nowhere", "b"), "holds no run and no pool"),
        (("pool", "nowhere", "b", "--out", "p"), "holds no run"),
        (("pool", "b", "--out", "p"), "name two runs or more"),
        (("pool", "b", "b", "--out", "p"), "are the same run"),
        (("pool", "a", "b", "--out", "p", "--by", "Ages"), "no such persona column"),
    ],
)
def test_wrong_input_is_one_sentence(
    command: Command, runs: tuple[Path, Path], capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    root = runs[0].parent
    assert command(*(root / a if a in ("a", "b", "p", "nowhere") else a for a in arguments)) == 2
    err = capfd.readouterr().err
    assert told in err
    assert len(err.strip().splitlines()) == 1
