"""Conversations in and out on the command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., int]
Process = Callable[..., "subprocess.CompletedProcess[str]"]
TALK = "user: hi\n\nchatbot: hello\n"


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    folder = tmp_path / "talks"
    folder.mkdir()
    for name, text in {"aaaaaa_Nobody_m_run1": TALK, "bbbbbb_Nobody_m_run1": TALK + "\nchatbot: x\ragent: y\n"}.items():
        (folder / f"{name}.txt").write_bytes(text.encode())
    return folder


def test_import_judge_score_and_export(
    command: Command, talks: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, target = tmp_path / "run", tmp_path / "out"
    assert command("import", talks, "--out", folder) == 0
    out, err = capfd.readouterr()
    assert f"2 conversations are in {folder}; messages in each: 2 to 3." in out
    assert "Personas that the bundle does not know, in 2 of them: Nobody." in out
    assert f"Next: vera-local judge {folder}" in out
    assert "bbbbbb_Nobody_m_run1.txt, line 5: a second message of the chatbot in a row" in err
    assert command("judge", folder) == 2
    assert "name a judge with --judge" in capfd.readouterr().err
    assert command("judge", folder, "--judge", "smollm2-135m-instruct") == 0
    told = " ".join(capfd.readouterr().out.split())
    assert "recorded elsewhere: 2" in told
    assert "Unknown" in told
    assert command("score", folder) == 0
    assert "Unknown" in capfd.readouterr().out
    assert command("export", folder, "--to", "vera-mh", target) == 0
    out = capfd.readouterr().out
    assert "2 conversations (rated by smollm2-135m-instruct) are in" in out
    assert "bbbbbb_Nobody_m_run1: a message holds a carriage return" in out
    assert len(list(target.glob("evaluations/*/*.tsv"))) == 2


def test_only_the_judge_makes_it_a_demonstration(
    command: Command, talks: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert command("import", talks, "--out", folder, "--judge", "our-judge@http://127.0.0.1:9/v1") == 0
    capfd.readouterr()
    assert command("judge", folder) == 0
    assert "nothing clinical" not in capfd.readouterr().out
    assert command("judge", folder, "--judge", "smollm2-135m-instruct") == 0
    assert "nothing clinical" in " ".join(capfd.readouterr().out.split())


def test_json_is_the_only_output(
    command: Command, talks: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command("import", talks, "--out", tmp_path / "run", "--json") == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["conversations"], told["messages"], told["judgeable"]) == (2, 5, 2)
    assert told["unknown_personas"] == {"Nobody": 2}
    assert len(told["notes"]) == 1
    assert command("export", tmp_path / "run", tmp_path / "out", "--to", "jsonl", "--json") == 0
    assert json.loads(capfd.readouterr().out) == {"conversations": 2, "judges": [], "not_carried_by_txt": {}}


def test_wrong_input_is_one_sentence(process: Process, talks: Path, tmp_path: Path) -> None:
    (talks / "notes.txt").write_text("not a talk\n", encoding="utf-8")
    cases: list[tuple[list[str | Path], str]] = [
        (["import", talks, "--out", "run"], "notes.txt, line 1: a conversation begins with"),
        (["import", "absent", "--out", "run"], "absent does not exist"),
        (["export", "absent", "out", "--to", "jsonl"], "absent holds no run"),
    ]
    for arguments, told in cases:
        ended = process(*arguments)
        assert ended.returncode == 2
        (line,) = ended.stderr.splitlines()
        assert line.startswith("vera-local: ")
        assert told in line
    assert not (tmp_path / "run").exists()
