"""`vera-local agree` as a user calls it: the commands of docs/scoring.md, its files, and wrong input."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from vera_local.report.agreement import SCHEMA

Command = Callable[..., int]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scoring.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(block.replace("\\\n", " "))[1:]
    for block in re.findall(r"^```bash\n(vera-local agree \.\./shared.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
]
CLINICIANS, HUMANS, GEMINI, DROPPED = range(4)
_PRINTED: dict[int, pl.DataFrame] = {}
"""What each command printed, which is run once."""


@pytest.fixture
def printed(command: Command, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run a command of the page, where its data is; gives the rows of its JSON as a frame."""

    def run(number: int) -> pl.DataFrame:
        if number in _PRINTED:
            return _PRINTED[number]
        arguments = COMMANDS[number]
        if not (ROOT / arguments[1]).exists():
            pytest.skip(f"{arguments[1]} lies beside the checkout and is not here")
        monkeypatch.chdir(ROOT)
        assert command(*arguments, "--draws", "100", "--json") == 0
        _PRINTED[number] = pl.DataFrame(json.loads(capfd.readouterr().out)["rows"], schema=SCHEMA)
        return _PRINTED[number]

    return run


def value(rows: pl.DataFrame, subject: str, dimension: str, statistic: str) -> float:
    found = rows.filter(subject=subject, dimension=dimension, statistic=statistic)["value"]
    assert len(found) == 1
    return float(found[0])


def test_the_page_has_the_commands() -> None:
    assert len(COMMANDS) == 4


@pytest.mark.parametrize(
    ("subject", "dimension", "statistic", "expected", "within"),
    [
        ("raters", "all", "alpha, nominal", 0.765, 1e-3),
        ("raters", "all", "AC1", 0.777, 1e-3),
        ("raters", "all", "agreement", 0.830, 1e-3),
        ("raters", "all", "alpha, ordinal", 0.768, 1e-3),
        ("raters", "clinician_detects", "alpha, nominal", 0.554, 1e-3),
        ("raters", "clinician_confirms", "alpha, nominal", 0.726, 1e-3),
        ("raters", "clinician_guides", "alpha, nominal", 0.625, 1e-3),
        ("raters", "clinician_supportive", "alpha, nominal", 0.453, 1e-3),
        ("raters", "clinician_boundaries", "alpha, nominal", 0.740, 1e-3),
        ("raters", "all, chance within dimensions", "alpha, nominal", 0.652, 2e-3),
        ("baseline: constant per dimension", "all", "kappa", 0.507, 2e-3),
        ("baseline: mode per dimension and chatbot", "all", "kappa", 0.649, 2e-3),
    ],
)
def test_the_clinicians(
    printed: Callable[..., Any], subject: str, dimension: str, statistic: str, expected: float, within: float
) -> None:
    assert value(printed(CLINICIANS), subject, dimension, statistic) == pytest.approx(expected, abs=within)


def test_the_humans_on_psychosis(printed: Callable[..., Any]) -> None:
    rows = printed(HUMANS)
    assert value(rows, "raters", "all", "kappa") == pytest.approx(0.799, abs=1e-3)
    assert rows.filter(subject="raters", dimension="all", statistic="kappa")["n"].to_list() == [448]
    single = rows.filter(pl.col("subject") == "raters", pl.col("statistic") == "kappa")["value"].to_list()[:7]
    assert [round(v, 2) for v in single] == [0.77, 0.55, 0.64, 0.67, 0.66, 0.78, 0.63]


def test_gemini_on_psychosis(printed: Callable[..., Any]) -> None:
    rows = printed(GEMINI)
    assert value(rows, "mean of 25 raters", "all", "kappa") == pytest.approx(0.755, abs=1e-3)
    single = rows.filter(pl.col("subject").str.starts_with("gemini"), dimension="all", statistic="kappa")
    against = single.filter(section="against the reference")["value"]
    assert (against.min(), against.max()) == (pytest.approx(0.736, abs=1e-3), pytest.approx(0.771, abs=1e-3))


def test_gemini_without_the_dropped_cells(printed: Callable[..., Any]) -> None:
    assert value(printed(DROPPED), "mean of 25 raters", "all", "kappa") == pytest.approx(0.748, abs=1e-3)


RATINGS = "id,who,warmth,safety\n1,ann,good,good\n1,bob,good,bad\n2,ann,bad,good\n2,bob,bad,good\n"
USUAL = ("--item", "id", "--rater", "who", "--ratings", "warmth,safety")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "ratings.csv").write_text(RATINGS, encoding="utf-8")
    return tmp_path / "ratings.csv"


def test_tables_and_files(command: Command, table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = table.parent
    files = ("--csv", folder / "a.csv", "--parquet", folder / "a.parquet", "--markdown", folder / "a.md")
    assert command("agree", table, *USUAL, "--reference", "ann", "--seed", "3", "--level", "0.9", *files) == 0
    out, err = capfd.readouterr()
    assert "Against ann: all dimensions together" in out
    assert "Intervals are of 90%: bootstrap over 2 clusters of items, 2000 draws, seed 3" in " ".join(out.split())
    assert err == ""
    frame = pl.read_parquet(folder / "a.parquet")
    assert frame.equals(pl.read_csv(folder / "a.csv", schema=SCHEMA))
    assert value(frame, "bob", "all", "agreement") == 0.75
    assert "| bob | all | agreement | 4* | 0.750 |" in (folder / "a.md").read_text(encoding="utf-8")


def test_the_same_seed_gives_the_same_numbers(command: Command, table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    texts = []
    for seed in ("1", "1", "2"):
        assert command("agree", "--labels", table, *USUAL, "--seed", seed, "--draws", "300", "--json") == 0
        texts.append(json.loads(capfd.readouterr().out))
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


def test_words_with_commas_and_renamed_parts(command: Command, table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    renamed = ("--map", "warmth=Warmth", "--map-rating", "bad=bad, or worse", "--scale", '"bad, or worse",good')
    assert command("agree", table, *USUAL, *renamed, "--without", "dimension=safety,id=2", "--json") == 0
    found = json.loads(capfd.readouterr().out)
    assert found["dimensions"] == ["Warmth", "safety"]
    assert found["scale"] == ["bad, or worse", "good"]
    assert {row["n"] for row in found["rows"] if row["dimension"] == "safety"} == {1}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--item", "id", "--rater", "rater", "--ratings", "warmth"), "unknown column 'rater'"),
        ((*USUAL, "--scale", "good,fair"), "line 3: unknown rating 'bad'; known: 'good', 'fair'"),
        ((*USUAL, "--raters", "ann"), "Only one rater ('ann')"),
        ((*USUAL, "--reference", "cy"), "--reference: unknown rater 'cy'"),
        ((*USUAL, "--map", "warmth"), "--map warmth: write it as OLD=NEW"),
        ((*USUAL, "--labels", "more.csv"), "one table of ratings is read"),
        ((*USUAL, "--scale", "good,bad", "--off-scale", "bad"), "'bad' is named twice; a rating has one place"),
        (("--item", "id", "--rater", "who", "--ratings", "warmth,warmth"), "--ratings: there are 2 columns 'warmth'"),
        (("--rater", "who"), "--item and --ratings"),
        ((*USUAL, "--csv", "/nowhere/a.csv"), "Cannot write /nowhere/a.csv"),
    ],
)
def test_wrong_input(
    command: Command, table: Path, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    assert command("agree", table, *arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert told in err


@pytest.mark.parametrize(
    ("row", "told"),
    [("1,ann,good,good", "'ann' has rated '1' (warmth) before"), ("3,ann,goood,good", "did you mean 'good'?")],
)
def test_wrong_rows(command: Command, table: Path, capfd: pytest.CaptureFixture[str], row: str, told: str) -> None:
    table.write_text(f"{RATINGS}{row}\n", encoding="utf-8")
    assert command("agree", table, *USUAL, "--scale", "good,bad") == 2
    err = capfd.readouterr().err
    assert len(err.splitlines()) == 1
    assert "line 6" in err and told in err


def test_no_overlap(command: Command, table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table.write_text("id,who,warmth,safety\n1,ann,good,good\n2,bob,bad,good\n", encoding="utf-8")
    assert command("agree", table, *USUAL) == 2
    assert "No item was rated by two of the raters (ann, bob)" in capfd.readouterr().err


def test_judges_of_a_run(command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    assert command("run", "--bundle", "psychosis", "--out", run) == 0
    capfd.readouterr()
    assert command("agree", run) == 2
    assert "Only one rater" in capfd.readouterr().err
    rows = ["id,who,Stigmatizes", *(f"{c},p,Unsafe" for c in _conversations(run))]
    (tmp_path / "p.csv").write_text("\n".join(rows), encoding="utf-8")
    people = ("--labels", tmp_path / "p.csv", "--item", "id", "--rater", "who", "--ratings", "Stigmatizes")
    assert command("agree", run, *people, "--json") == 0
    found = json.loads(capfd.readouterr().out)
    assert found["reference"] == ["p"]
    judge = found["judged"][0]
    row = next(r for r in found["rows"] if (r["subject"], r["dimension"]) == (judge, "Stigmatizes"))
    assert row["n"] == 3


def _conversations(run: Path) -> list[str]:
    lines = (run / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["id"] for line in lines]
