"""Several judges on the command line, and reading what they said."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import EngineDied, InvalidRequest, Reply, Request

Command = Callable[..., int]
Process = Callable[..., "subprocess.CompletedProcess[str]"]
SMALL = ("--personas", "4", "--turns", "4")
A, B = "a@http://127.0.0.1:9/v1", "b@http://127.0.0.1:9/v1"


@pytest.fixture
def judged(command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Path:
    """A run with a repeated judge in mode reason and one that is added later."""
    folder = tmp_path / "run"
    flags = ("--judge-mode", "reason", "--judge-repeats", "2", "--no-confidence")
    assert command("run", *SMALL, "--judge", A, *flags, "--out", folder) == 0
    assert command("judge", folder, "--judge", B) == 0
    return folder


def told(capfd: pytest.CaptureFixture[str]) -> str:
    return " ".join(capfd.readouterr().out.split())


def test_a_jury_is_shown_with_its_rule_and_how_far_judges_agree(
    judged: Path, command: Command, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert command("score", judged) == 0
    out = told(capfd)
    assert "Ratings by a:reason (majority of 2)" in out
    assert "Ratings by b " in out
    assert "Ratings by jury" in out
    assert "Ratings by a:reason#2 " not in out.split("What decided")[0], "repeats are shown joined"
    assert "jury: joined from a:reason (majority of 2), b." in out
    assert "Rule: For each dimension the rating that most members gave; a tie goes to the worse" in out
    assert "questions asked by each were answered alike." in out
    assert "a:reason (majority of 2) and b: " in out
    assert "Uncertain answers, to be looked at: " in out
    assert "verdicts.csv" in out


def test_json_tells_the_same(judged: Path, command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    assert command("score", judged, "--json") == 0
    facts = json.loads(capfd.readouterr().out)
    assert facts["judges"].keys() == {"a:reason", "a:reason#2", "a:reason (majority of 2)", "b", "jury"}
    assert facts["juries"]["jury"]["members"] == ["a:reason (majority of 2)", "b"]
    assert facts["repeats_alike"].keys() == {"a:reason (majority of 2)"}
    assert [pair["judges"] for pair in facts["ratings_alike"]] == [["a:reason (majority of 2)", "b"]]
    assert facts["uncertain"].keys() == {"b"}


def test_the_same_command_without_judges_judges_with_all_of_the_run(
    judged: Path, command: Command, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert command("judge", judged) == 0
    err = capfd.readouterr().err
    assert "Judging" not in err
    assert "Note: a:reason draws at temperature 0, so its repeats differ by the engine's rounding alone" in err


def test_what_is_about_to_run_is_told(command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "run.toml"
    judges = '[[judge]]\nmodel = "a"\nurl = "http://127.0.0.1:9/v1"\nrepeats = 2\ntemperature = 0.7\n' + (
        '[[judge]]\nmodel = "qwen3-8b"\nmode = "think"\nwindow = true\nevidence = false\n'
    )
    config.write_text(f"personas = 2\nturns = 2\n{judges}", encoding="utf-8")
    assert command("run", "--config", config, "--out", tmp_path / "run") == 0
    err = capfd.readouterr().err
    assert "judge 1  a at http://127.0.0.1:9/v1, 2 times" in err
    assert (
        "judge 2  Qwen3 8B, mode think, at most 2048 tokens of reasoning, long transcripts cut, without evidence" in err
    )
    assert "Note:" not in err
    assert "Judging by a: 2/2 done" in err
    assert "Judging by qwen3-8b:think: 2/2 done" in err


def test_a_run_s_conversations_are_listed_and_read(
    judged: Path, command: Command, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert command("show", judged) == 0
    lines = capfd.readouterr().out.splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert len(heads) == 4
    assert all("4 turns, reached the set turns" in head for head in heads)
    assert len(lines) == 4 * (1 + 5)
    one = heads[0].split(" ")[0]
    assert command("show", judged, "--judge", "jury") == 0
    assert len(capfd.readouterr().out.splitlines()) == 8
    assert command("show", judged, one) == 0
    out = capfd.readouterr().out
    assert "[1] user: message" in out
    assert "[4] chatbot: message" in out
    assert all(f"\n{name}: " in out for name in ("a:reason", "a:reason#2", "b", "jury", "a:reason (majority of 2)"))
    assert "     Why: message" in out
    assert "     Uncertain: the options hold 0.00 of the probability" in out
    assert command("show", judged, one, "--judge", "b") == 0
    out = capfd.readouterr().out
    assert "\nb: " in out
    assert "a:reason" not in out


def test_what_a_run_has_not_is_told_with_what_it_has(
    judged: Path, command: Command, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert command("show", judged, "--judge", "a:reasn") == 2
    assert "has no judge 'a:reasn'; it has 5, nearest first: a:reason" in capfd.readouterr().err
    assert command("show", judged, "Nobody-1") == 2
    assert "has no conversation 'Nobody-1'; it has 4, nearest first: " in capfd.readouterr().err


def test_wrong_input_is_one_sentence(process: Process) -> None:
    cases: list[tuple[list[str], str]] = [
        (["run", "--judge", "qwen3-8b", "--judge", "Qwen/Qwen3-8B"], "judge: qwen3-8b is named twice"),
        (["run", "--judge-mode", "think"], "--judge-mode think: holds for the judges of the command line"),
        (["run", "--judge", "qwen3-8b", "--judge-mode", "slow"], "--judge-mode slow: must be 'direct', 'reason'"),
        (["run", "--judge", "gemma-3-12b-it", "--judge-mode", "think"], "template.think_end"),
        (["run", "--judge", "qwen3-8b", "--judge-repeats", "0"], "--judge-repeats 0: must be at least 1"),
        (["show", "nothing"], "nothing holds no run"),
    ]
    for arguments, sentence in cases:
        ended = process(*arguments)
        assert (ended.returncode, ended.stdout) == (2, "")
        (line,) = ended.stderr.splitlines()
        assert line.startswith("vera-local: ")
        assert sentence in line


def test_nothing_that_a_server_says_acts_on_the_terminal(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    said = "no \x1b[2Jroom\x1b]0;title\x07"
    whole = FakeEngine.generate

    async def refuse(engine: FakeEngine, request: Request) -> Reply:
        if "transcript" in request.messages[0].content:
            raise InvalidRequest(said)
        return await whole(engine, request)

    monkeypatch.setattr(FakeEngine, "generate", refuse)
    assert command("run", *SMALL, "--judge", A, "--out", tmp_path / "run") == 0
    ended = capfd.readouterr()
    assert "Why (error): no \\x1b[2Jroom" in ended.out
    assert "\x1b" not in ended.out + ended.err

    async def die(engine: FakeEngine, request: Request) -> Reply:
        raise EngineDied(said)

    monkeypatch.setattr(FakeEngine, "generate", die)
    assert command("run", *SMALL, "--judge", A, "--out", tmp_path / "other") == 1
    ended = capfd.readouterr()
    assert "vera-local: no \\x1b[2Jroom" in ended.err
    assert "\x1b" not in ended.out + ended.err
