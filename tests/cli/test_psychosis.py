"""The commands with a bundle of vignettes: nothing about a simulator, and no word for what cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., int]


def test_run_with_the_defaults(command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert command("run", "--bundle", "psychosis", "--out", tmp_path / "run") == 0
    out, err = capfd.readouterr()
    assert "simulator" not in err
    assert "3 of 19" in err
    assert "2 messages" in err
    assert "Simulating: 3/3 done" in err
    assert "Judging: 3/3 done" in err
    for word in ("Stigmatizes", "Validates", "Embellishes", "Challenges", "Referral", "Advice", "Continues", "Unsafe"):
        assert word in out
    assert "By Presentation" in out
    assert "Relevant" not in out
    assert "VERA" not in out
    assert "Controls" not in out
    assert max(map(len, out.splitlines()[:30])) <= 80


def test_controls_are_counted_in_words(command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    where = ("--bundle", "psychosis", "--controls", "--personas", "8", "--out", tmp_path / "run")
    assert command("run", *where) == 0
    out, err = capfd.readouterr()
    assert "8 of 38" in err
    assert "Controls: 2 of the conversations; the ratings by Presentation show them apart." in " ".join(out.split())


def test_json_and_the_stages_one_by_one(command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "run.toml"
    config.write_text('bundle = "psychosis"\ncontrols = true\npersonas = 4\n', encoding="utf-8")
    folder = tmp_path / "run"
    assert command("simulate", "--config", config, "--out", folder) == 0
    capfd.readouterr()
    assert command("judge", folder, "--judge", "smollm2-135m-instruct", "--json") == 0
    judged = json.loads(capfd.readouterr().out)
    assert judged["judges"]["smollm2-135m-instruct"]["groups"]["Control"]["conversations"] == 1
    assert command("score", folder, "--json") == 0
    assert json.loads(capfd.readouterr().out) == judged


def test_what_a_bundle_of_vignettes_cannot_do(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command("run", "--bundle", "psychosis", "--turns", "6", "--out", tmp_path / "run") == 2
    assert "says one scripted message and no more" in capfd.readouterr().err
    assert command("run", "--controls", "--out", tmp_path / "run") == 2
    assert "has no controls; leave controls out" in capfd.readouterr().err
    assert not (tmp_path / "run").exists()
