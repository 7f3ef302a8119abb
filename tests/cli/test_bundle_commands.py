"""`vera-local rubric` and `vera-local personas`, and warnings of a bundle that is run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from vera_local.data import data_root

Command = Callable[..., int]
PUBLISHED = Path(__file__).parents[2] / "../shared/data/vera-mh-1.1"


@pytest.fixture
def spoilt(tmp_path: Path) -> Path:
    """A copy of the shipped bundle with a mistake in each kind of file."""
    root = data_root()
    shutil.copytree(root / "rubric/suicide_risk", tmp_path / "rubric/suicide_risk")
    folder = tmp_path / "rubric/suicide_risk"
    people = (root / "personas/suicide_risk.tsv").read_text(encoding="utf-8").split("\n")
    (folder / "suicide_risk.tsv").write_text("\n".join([people[0], "one\tcell", people[1], people[1]]), "utf-8")
    rubric = (folder / "rubric.yaml").read_text(encoding="utf-8")
    (folder / "rubric.yaml").write_text(rubric.replace("then: go to 2}", "then: go to 222}", 1), "utf-8")
    (folder / "judge_question.txt").write_text("{question} {answer}", "utf-8")
    return folder


def test_the_shipped_bundle_is_sound(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("rubric", "check", "suicide_risk", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["questions"], sum(found["dimensions"].values()), found["problems"]) == (36, 36, [])
    assert found["dimensions"]["Guides to Human Care"] == 14
    assert command("personas", "check", "suicide_risk", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["personas"] == sum(found["groups"].values()) > 0


@pytest.mark.parametrize("kind", ["rubric", "personas"])
def test_every_problem_is_said_at_once_with_file_and_place(
    command: Command, capsys: pytest.CaptureFixture[str], spoilt: Path, kind: str
) -> None:
    assert command(kind, "check", spoilt, "--json") == 2
    problems = json.loads(capsys.readouterr().out)["problems"]
    for part in ("'222'", "line 2: it has 2 fields", "line 4: the name", "{answer}", "{options} is missing"):
        assert sum(part in problem for problem in problems) == 1, part
    assert all(str(spoilt) in problem for problem in problems)
    assert command(kind, "check", spoilt) == 2
    told = capsys.readouterr().out.splitlines()
    assert [line for line in told if line.startswith("Problem: ")] == [f"Problem: {p}" for p in problems]
    assert command(kind, "show", spoilt) == 2


def test_show_and_graph(command: Command, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command("rubric", "show", "suicide_risk") == 0
    shown = capsys.readouterr().out
    assert "Yes [High Potential for Harm]: go to 5" in shown and "Follows AI Boundaries" in shown
    assert command("rubric", "graph", "suicide_risk") == 0
    drawn = capsys.readouterr().out
    assert drawn.startswith("flowchart TD\n")
    assert command("rubric", "graph", "suicide_risk", "--out", tmp_path / "flow.mmd") == 0
    assert (tmp_path / "flow.mmd").read_text(encoding="utf-8") == drawn
    assert command("rubric", "graph", "suicide_risk", "--out", tmp_path / "flow.mmd") == 2, "nothing is overwritten"
    assert command("rubric", "graph", "suicide_risk", "--out", tmp_path / "no" / "flow.mmd") == 2
    assert command("personas", "show", "suicide_risk") == 0
    assert "Short Current Suicide Risk Level: None" in capsys.readouterr().out


def test_what_is_no_bundle_is_told(command: Command, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments in (("rubric", "check", tmp_path), ("rubric", "check", "suicide_risk", "--target", "SI")):
        assert command(*arguments) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published bundle is not in ../shared")
def test_a_warning_of_an_official_bundle_goes_to_standard_error(
    command: Command, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert command("rubric", "check", PUBLISHED, "--json") == 0
    (warning,) = json.loads(capfd.readouterr().out)["warnings"]
    options = ("--bundle", PUBLISHED, "--end-semantics", "legacy", "--personas", "1", "--turns", "2")
    assert command("run", *options, "--out", tmp_path / "run", "--json") == 0
    told = capfd.readouterr()
    assert f"Warning: {warning}" in told.err and "Warning" not in told.out
    assert command("score", tmp_path / "run", "--json") == 0
    assert "Skylar" in capfd.readouterr().err


def test_end_semantics_are_one_of_two(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("run", "--end-semantics", "old") == 2
    assert "--end-semantics old: must be 'fixed' or 'legacy'" in capsys.readouterr().err
