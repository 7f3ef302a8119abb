"""`vera-local sweep`: what it says before, what it writes and prints in the end, and how it fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]
NAMES = [f"{who}--qwen3-8b--suicide_risk--seed{seed}" for who in ("new", "old") for seed in (0, 1)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A sweep of two chatbots and two seeds, rated by two judges."""
    path = tmp_path / "nightly.toml"
    path.write_text(
        f"""
personas = 4
turns = 4
simulator = "qwen3-8b"
judge = ["smollm2-135m-instruct", "qwen3-14b"]
[sweep]
out = "{tmp_path / "out"}"
seeds = [0, 1]
[[chatbot]]
name = "new"
model = "smollm2-135m-instruct"
[[chatbot]]
name = "old"
model = "smollm2-135m-instruct"
temperature = 0.1
""",
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize("flag", ["--plan", "--dry-run"])
def test_the_plan_tells_runs_and_loadings_and_makes_nothing(
    command: Command, file: Path, tmp_path: Path, capfd: Output, flag: str
) -> None:
    assert command("sweep", file, flag) == 0
    out = capfd.readouterr().out
    assert "Runs: 4. Conversations: 16, 16 of them in runs that are still to be held." in out
    for model in ("qwen3-8b", "smollm2-135m-instruct", "qwen3-14b"):
        assert f"{model}: loaded once." in out
    assert not (tmp_path / "out").exists()
    assert command("sweep", file, flag, "--json") == 0
    told = json.loads(capfd.readouterr().out)
    assert [(one["name"], one["conversations"], one["left"]) for one in told["points"]] == [
        (name, 4, "simulate, judge") for name in NAMES
    ]


def test_a_sweep_is_compared_in_the_end_and_every_command_works_on_its_runs(
    command: Command, file: Path, tmp_path: Path, capfd: Output
) -> None:
    assert command("sweep", file) == 0
    out, err = capfd.readouterr()
    assert "Sweep: 4 runs with 16 conversations, judged by smollm2-135m-instruct, qwen3-14b" in err
    assert "Runs: 4 of 4 done" in out
    assert "Rated by qwen3-14b" in out and "Differences" in out
    folder = tmp_path / "out"
    told = json.loads((folder / "comparison-suicide_risk.json").read_text(encoding="utf-8"))
    sides = {f"{who}--qwen3-8b--suicide_risk--seeds0+1" for who in ("new", "old")}
    assert told["sides"].keys() == sides
    assert told["judges"].keys() == {"smollm2-135m-instruct", "qwen3-14b", "jury"}
    page = (folder / "comparison-suicide_risk.html").read_text(encoding="utf-8")
    assert all(side in page for side in sides)
    runs = [folder / name for name in NAMES]
    assert command("compare", *runs) == 0
    assert command("report", runs[0]) == 0
    assert command("stats", runs[0]) == 0
    assert command("score", runs[1]) == 0
    (folder / "engine.log").write_text("a prompt, perhaps")
    assert command("purge", runs[3], "--yes") == 0
    assert not (folder / "engine.log").exists(), "runs share it"
    capfd.readouterr()
    assert command("sweep", file, "--plan", "--json") == 0
    assert {one["left"] for one in json.loads(capfd.readouterr().out)["points"]} == {"nothing"}
    assert command("sweep", file, "--json") == 0
    again = json.loads(capfd.readouterr().out)
    assert again["done"] == NAMES and again["failed"] == {}
    assert again["comparisons"]["suicide_risk"]["judges"].keys() == told["judges"].keys()
    assert command("judge", runs[2], "--judge", "qwen3-8b") == 0
    assert command("sweep", file) == 0
    assert "No comparison on suicide_risk: These cannot be pooled: judge jury of" in capfd.readouterr().out


def test_a_run_that_fails_is_told_and_so_does_the_exit_code(
    command: Command, file: Path, tmp_path: Path, capfd: Output
) -> None:
    with file.open("a") as more:
        more.write('[[chatbot]]\nkind = "openai"\nname = "down"\nmodel = "m"\nurl = "http://127.0.0.1:9/v1"\n')
    assert command("sweep", file) == 1
    out, err = capfd.readouterr()
    assert "Runs: 4 of 6 done" in out
    assert out.count("Failed: down--qwen3-8b--suicide_risk--seed") == 2
    last = err.strip().splitlines()[-1]
    assert last.startswith("vera-local: 2 of 6 runs failed, the first of them down--qwen3-8b--suicide_risk--seed0: ")
    files = [tmp_path / "out" / f"comparison-suicide_risk.{kind}" for kind in ("html", "json")]
    missing = ", ".join(f"down--qwen3-8b--suicide_risk--seed{seed}" for seed in (0, 1))
    for told in (out, *(path.read_text(encoding="utf-8") for path in files)):
        assert f"Runs of the sweep that are not done, and missing here: {missing}." in told
    text = file.read_text(encoding="utf-8")
    kept, _, tables = text.partition("[[chatbot]]")
    file.write_text(f"{kept}[[chatbot]]{tables.rpartition('[[chatbot]]')[2]}", encoding="utf-8")
    assert command("sweep", file) == 1
    assert "No comparison on suicide_risk: no run is done." in capfd.readouterr().out
    assert not any(path.exists() for path in files), "they would tell of runs that are not in the sweep any more"


def test_a_wrong_file_is_told_in_one_sentence(command: Command, file: Path, capfd: Output) -> None:
    file.write_text("turn = 4\n", encoding="utf-8")
    assert command("sweep", file) == 2
    err = capfd.readouterr().err
    assert len(err.strip().splitlines()) == 1
    assert f"{file}: key turn: unknown key" in err


def test_a_folder_of_something_else_is_left_alone(command: Command, file: Path, tmp_path: Path, capfd: Output) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("mine")
    assert command("sweep", file) == 2
    assert "holds other files (letter.txt) and no sweep; name a new or empty folder" in capfd.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["letter.txt"]
