"""Wrong input is one sentence and exit code 2, and nothing is written or lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from vera_local.data import data_root

Process = Callable[..., "subprocess.CompletedProcess[str]"]


def refused(process: Process, folder: Path, *arguments: str | Path) -> str:
    """The sentence that a command ended with; what stands in its folder must not have changed."""
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    ended = process(*arguments)
    assert ended.returncode == 2, ended.stderr
    assert ended.stdout == ""
    lines = ended.stderr.splitlines()
    assert lines[-1].startswith("vera-local: ")
    assert sum(line.startswith("vera-local: ") for line in lines) == 1
    assert "Traceback" not in ended.stderr
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before
    return lines[-1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--judge", "qwen4"], 'there is no model "qwen4"'),
        (["--chatbot", "models/none"], "models/none"),
        (["--config", "absent.toml"], "absent.toml: the config cannot be read"),
        (["--judge", "qwen3-8b"], "hf download Qwen/Qwen3-8B"),
        (["--turns", "0"], "--turns 0: must be at least 1"),
        (["--personas", "Nobody"], "Nobody"),
        (["--bundle", "none"], "there is no bundle 'none'"),
    ],
)
def test_flags(process: Process, tmp_path: Path, arguments: list[str], told: str) -> None:
    assert told in refused(process, tmp_path, "run", *arguments)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("turns = = 1", "run.toml: this is not valid TOML"),
        ("turnz = 1", "run.toml: key turnz: unknown key"),
        ("turns = 0", "run.toml: key turns: must be at least 1"),
    ],
)
def test_config_files(process: Process, tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "run.toml").write_text(text, encoding="utf-8")
    assert told in refused(process, tmp_path, "run", "--config", "run.toml")


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("suicide_risk.tsv", "Treatment Engagement / Access", "Treatment", "Treatment Engagement / Access"),
        ("rubric.yaml", "then: go to 2}", "then: go to 99}", "99"),
        ("rubric.yaml", "then: go to 6}", "then: go to 2}", "2 -> 4 -> 2"),
    ],
)
def test_bundles(process: Process, tmp_path: Path, file: str, old: str, new: str, told: str) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(data_root() / "rubric" / "suicide_risk", bundle)
    shutil.copy(data_root() / "personas" / "suicide_risk.tsv", bundle)
    text = (bundle / file).read_text(encoding="utf-8")
    assert old in text
    (bundle / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    sentence = refused(process, tmp_path, "run", "--bundle", bundle)
    assert file in sentence
    assert told in sentence


def test_a_duplicate_persona(process: Process, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(data_root() / "rubric" / "suicide_risk", bundle)
    lines = (data_root() / "personas" / "suicide_risk.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    (bundle / "suicide_risk.tsv").write_text("".join([*lines, lines[1]]), encoding="utf-8")
    sentence = refused(process, tmp_path, "run", "--bundle", bundle)
    assert lines[1].split("\t")[0] in sentence


def test_a_folder_that_cannot_be_written(process: Process, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "cannot write there" in refused(process, tmp_path, "run", "--out", "file/run")
    if os.geteuid() == 0:
        assert "cannot write there" in refused(process, tmp_path, "run", "--out", "/proc/run")


def test_a_server_that_is_not_there(process: Process, tmp_path: Path) -> None:
    server = "m@http://127.0.0.1:9/v1"
    players = ("--simulator", server, "--chatbot", server, "--judge", server)
    assert "no server answers at http://127.0.0.1:9/v1" in refused(process, tmp_path, "run", *players)


def test_a_folder_without_a_run(process: Process, tmp_path: Path) -> None:
    for command in ("judge", "score"):
        assert "nothing holds no run" in refused(process, tmp_path, command, "nothing")


def test_an_unknown_flag_is_refused_by_its_name(process: Process) -> None:
    ended = process("run", "--turnz", "3")
    assert ended.returncode == 2
    assert "--turnz" in ended.stderr
