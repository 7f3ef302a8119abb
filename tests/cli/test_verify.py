from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from vera_local.engine.digest import model_digests
from vera_local.run import identities


@pytest.fixture
def folder(tiny_model_folder: Path, tmp_path: Path) -> Path:
    model = tmp_path / "judge-model"
    model.mkdir()
    for file in tiny_model_folder.iterdir():
        (model / file.name).write_bytes(file.read_bytes())
    return model


@pytest.fixture
def run(command: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VERA_LOCAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(identities, "locate", lambda profile: folder)
    monkeypatch.setattr(identities, "model_digests", model_digests)
    out = tmp_path / "run"
    asked = ("--personas", "1", "--repeats", "1", "--turns", "2", "--out", out)
    roles = ("--simulator", folder, "--chatbot", folder, "--judge", folder)
    assert command("run", *asked, *roles) == 0
    return out


def told(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(capfd.readouterr().out)
    return found


def test_the_files_of_a_run_are_the_same(
    command: Command, run: Path, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert command("models", "verify", "--against", run, "--json") == 0
    (one,) = told(capfd)
    assert (one["model"], one["folder"], one["compared"], one["faults"]) == ("judge-model", str(folder), True, [])
    assert command("models", "verify", folder, "--against", run) == 0
    assert "ok: the same files as in the run" in capfd.readouterr().out


def test_a_changed_file_ends_with_exit_code_1_and_its_name(
    command: Command, run: Path, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    with (folder / "config.json").open("a", encoding="utf-8") as file:
        file.write("\n")

    assert command("models", "verify", "--against", run) == 1
    assert "DIFFERS: config.json has other content" in capfd.readouterr().out


def test_without_a_run_the_weights_are_looked_at(
    command: Command, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command("models", "verify", folder) == 0
    assert "ok: the weights are whole" in capfd.readouterr().out
    (folder / "model.safetensors").write_bytes(b"half")
    assert command("models", "verify", folder) == 1


def test_a_model_that_had_no_part_in_the_run_is_named(
    command: Command, run: Path, tiny_model_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert command("models", "verify", tiny_model_folder, "--against", run) == 2
    assert "its models are: judge-model" in capfd.readouterr().err
