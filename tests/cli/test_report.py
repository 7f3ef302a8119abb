"""The report on the command line: what is written where, and what is told."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.report.html.parsed import Parsed, at

Command = Callable[..., int]


@pytest.fixture
def folder(command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Path:
    out = tmp_path / "run"
    assert command("run", "--personas", "8", "--turns", "2", "--out", out) == 0
    capfd.readouterr()
    return out


def test_it_is_written_into_the_run_for_its_owner_alone(
    command: Command, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command("report", folder) == 0
    file = folder / "report.html"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f"{file}: it holds whole transcripts" in capfd.readouterr().out
    its = Parsed.of(file.read_text(encoding="utf-8"))
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    assert its.numbers and all(n.value == str(at(scores, n.pointer)) for n in its.numbers)
    said = json.loads((folder / "conversations.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert [text for _, text in its.conversations[0]["turns"]] == [m["text"] for m in said["messages"]]


def test_redacted_elsewhere_with_a_summary_and_figures(
    command: Command, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out, text, figures = tmp_path / "r.html", tmp_path / "r.md", tmp_path / "figures"
    arguments = ("--redact", "--out", out, "--markdown", text, "--figures", figures, "--by", "Age")
    assert command("report", folder, *arguments) == 0
    assert "no transcript in it" in capfd.readouterr().out
    page = out.read_text(encoding="utf-8")
    lines = (folder / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
    said = [m["text"] for line in lines for m in json.loads(line)["messages"]]
    assert said and not any(message in page for message in said)
    assert "By Age" in page
    assert text.read_text(encoding="utf-8").startswith("### smollm2-135m-instruct: Suicide risk")
    names = {f.name for f in figures.iterdir()}
    assert {f.removesuffix(".svg") + ".png" for f in names if f.endswith(".svg")} <= names
    assert "ratings-by-Age-smollm2-135m-instruct.svg" in names
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize("words", ["-1", "many", "1.5", "", "٣"])
def test_a_strange_number_of_excerpts_is_told(
    command: Command, folder: Path, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command("report", folder, f"--excerpts={words}") == 2
    assert f"--excerpts {words}: write none, or how many" in capfd.readouterr().err


def test_no_excerpts(command: Command, folder: Path) -> None:
    assert command("report", folder, "--excerpts", "none") == 0
    its = Parsed.of((folder / "report.html").read_text(encoding="utf-8"))
    assert its.all("figure") == [] and its.conversations


def test_what_cannot_be_is_told_in_a_sentence(
    command: Command, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command("report", tmp_path) == 2
    assert "holds no run" in capfd.readouterr().err
    assert command("report", folder, "--out", tmp_path / "no" / "r.html") == 2
    assert "name an existing folder" in capfd.readouterr().err
    assert command("report", folder, "--gpus", "2") == 2
    assert "name the price, too" in capfd.readouterr().err


def test_comparisons_as_pages(
    command: Command, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other, page = tmp_path / "other", tmp_path / "c.html"
    assert command("run", "--personas", "8", "--turns", "2", "--seed", "2", "--out", other) == 0
    assert command("judge", other, "--judge", "qwen3-8b") == 0
    capfd.readouterr()
    for runs in ((folder, other), (other,)):
        assert command("compare", *runs, "--html", page, "--json") == 0
        told = json.loads(capfd.readouterr().out)
        its = Parsed.of(page.read_text(encoding="utf-8"))
        assert len(its.numbers) > 100
        assert all(n.value == str(at(told, n.pointer)) for n in its.numbers)
