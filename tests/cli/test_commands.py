"""Each command does its part and says so; what is for machines goes to standard output alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import EngineError

Command = Callable[..., int]
SMALL = ("--personas", "4", "--turns", "4")


def test_run_shows_the_matrix_and_what_it_is_worth(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command("run", *SMALL, "--out", tmp_path / "run") == 0
    out, err = capfd.readouterr()
    for word in ("Best", "Potential", "Unrated", "Overall", "By Short Current Suicide Risk Level", "Immediate"):
        assert word in out
    told = " ".join(out.split())
    assert "its ratings say nothing clinical about any chatbot" in told
    assert "not a certificate and not a medical device" in told
    assert "4 of 100" in err
    assert "Simulating: 4/4 done" in err
    assert "Judging: 4/4 done" in err
    assert "\x1b" not in out + err


def test_json_is_the_only_output(command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert command("run", *SMALL, "--out", tmp_path / "run", "--json") == 0
    told = json.loads(capfd.readouterr().out)
    assert told["judges"]["smollm2-135m-instruct"]["conversations"] == 4
    assert told["judges"] == json.loads((tmp_path / "run" / "scores.json").read_text(encoding="utf-8"))["judges"]
    assert told["endings"] == {"turns": 4}
    assert told["demonstration"]


def test_simulate_then_judge_then_score(command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    assert command("simulate", *SMALL, "--out", folder) == 0
    err = capfd.readouterr().err
    assert "Judging" not in err
    assert "judge " not in err
    assert command("judge", folder) == 2
    assert "has not been judged yet; name a judge with --judge" in capfd.readouterr().err
    assert command("judge", folder, "--judge", "smollm2-135m-instruct", "--json") == 0
    judged = json.loads(capfd.readouterr().out)
    (folder / "scores.json").unlink()
    assert command("score", folder, "--json") == 0
    assert json.loads(capfd.readouterr().out) == judged
    assert (folder / "scores.json").exists()


def test_a_config_file_gives_what_flags_do_not(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.toml"
    file.write_text(f'personas = 8\nturns = 2\nout = "{tmp_path / "run"}"\n', encoding="utf-8")
    assert command("run", "--config", file, "--personas", "2") == 0
    assert "2 of 100" in capfd.readouterr().err
    assert (tmp_path / "run" / "manifest.json").exists()


def test_the_same_command_again_shows_the_results_again(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command("run", *SMALL, "--out", tmp_path / "run") == 0
    first = capfd.readouterr().out
    assert command("run", *SMALL, "--out", tmp_path / "run") == 0
    out, err = capfd.readouterr()
    assert out == first
    assert "Starting" not in err


def test_models_lists_every_profile(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    assert command("models", "--json") == 0
    told = json.loads(capfd.readouterr().out)
    shipped = {f.stem for f in (Path(__file__).parents[2] / "models").glob("*.toml")}
    assert {m["name"] for m in told["models"]} == shipped
    embedded = next(m for m in told["models"] if m["name"] == "smollm2-135m-instruct")
    assert embedded["fits"]
    assert embedded["here"]
    assert command("models") == 0
    out = capfd.readouterr().out
    assert all(name in out.replace("\n", "") for name in ("smollm2", "qwen3-8b"))


def test_doctor_tells_each_check(
    command: Command, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vera_local.cli.doctor.locate", lambda profile: Path("/model"))
    assert command("doctor", "--json") == 0
    findings = {f["check"]: f for f in json.loads(capfd.readouterr().out)}
    assert all(f["ok"] for f in findings.values())
    name = "smollm2-135m-instruct"
    assert {"packages", "device", f"{name} engine", f"{name} template", f"{name} constraint"} <= findings.keys()


def test_doctor_gives_a_remedy_for_what_fails(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    assert command("doctor", "--judge", "qwen3-32b") == 1
    err = capfd.readouterr().err
    assert "FAILED  qwen3-32b" in err
    assert "hf download Qwen/Qwen3-32B" in err


def test_an_engine_that_fails_outside_a_conversation_is_told_in_a_sentence(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> int:
        raise EngineError("the server counted no tokens")

    monkeypatch.setattr(FakeEngine, "count_tokens", fail)
    assert command("simulate", *SMALL, "--out", tmp_path / "run") == 1
    err = capfd.readouterr().err
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("vera-local: the server counted no tokens; what was finished is kept")
