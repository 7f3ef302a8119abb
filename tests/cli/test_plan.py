"""`vera-local plan` says what a run would be, and makes none."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vera_local.cli import app as commands
from vera_local.engine.gpus import GPUS
from vera_local.engine.machine import this_machine

Command = Callable[..., int]
MODELS = ("--simulator", "qwen3-32b-fp8", "--chatbot", "qwen3-14b", "--judge", "qwen3-32b-fp8")
SMALL = ("--personas", "4", "--turns", "4")


@pytest.fixture(autouse=True)
def no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever models this machine has, texts are measured by their characters."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("vera_local.run.rulers.converted", lambda: None)


def test_it_takes_the_options_of_run_and_its_own() -> None:
    run, plan = (set(inspect.signature(command).parameters) for command in (commands.run, commands.plan))
    assert plan == run | {"gpu", "gpus", "conversations", "like", "gpu_hour_price"}


def test_a_plan_is_told_and_nothing_is_made(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vera_local.cli.app.opener", lambda log: pytest.fail("no engine is to be opened"))
    assert command("plan", *MODELS, "--gpu", "H200", "--gpu-hour-price", "3.5", "--out", tmp_path / "run") == 0
    out = " ".join(capfd.readouterr().out.split())
    for words in (
        "100 of 30 messages each",
        "H200, 141 GB",
        "simulator",
        "1,500",
        "Residency",
        "In all",
        "at 3.5 for a GPU-hour",
        "is asked 500 to 7,000 times",
        "H200 by its data sheet",
        "This is an estimate",
        "compared with no run on a GPU",
    ):
        assert words in out, words
    assert not (tmp_path / "run").exists()


def test_it_fits_a_terminal_and_a_small_cost_is_no_nothing(
    command: Command, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert command("plan", *MODELS, *SMALL, "--gpu", "H200", "--gpu-hour-price", "0.01") == 0
    out = capfd.readouterr().out
    assert "\N{HORIZONTAL ELLIPSIS}" not in out
    assert all(name in out for name in ("requests", "computed", "qwen3-32b-fp8", "qwen3-14b"))
    (cost,) = [line.split()[1] for line in out.splitlines() if line.startswith("Cost")]
    assert 0 < float(cost) < 0.01


def test_json_holds_all_of_it(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    assert command("plan", *MODELS, "--gpu", "h100", "--gpus", "2", "--gpu-hour-price", "2", "--json") == 0
    told: dict[str, Any] = json.loads(capfd.readouterr().out)
    assert told["machine"] == {"device": "cuda", "name": "H100 SXM", "memory_bytes": 80 * 10**9, "gpus": 2}
    assert [role["role"] for role in told["roles"]] == ["simulator", "chatbot", "judge"]
    for role in told["roles"]:
        assert role["prompt_tokens"] == pytest.approx(role["computed_tokens"] + role["cached_tokens"])
        assert role["requests_least"] <= role["requests"] <= role["requests_most"]
    assert told["seconds"] == pytest.approx(sum(stage["seconds"] for stage in told["stages"].values()))
    assert told["cost"] == pytest.approx(told["seconds"] / 3600 * 2 * 2), "both GPUs are paid"
    assert told["assumptions"]
    assert told["estimate"].startswith("This is an estimate")


def test_a_config_file_is_planned_as_it_is_run(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.toml"
    file.write_text('personas = 8\nturns = 2\n[[judge]]\nmodel = "qwen3-32b"\nrepeats = 2\n', encoding="utf-8")
    assert command("plan", "--config", file, "--json") == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["conversations"], told["turns"]) == (8, 2)
    assert [role["name"] for role in told["roles"]][-2:] == ["qwen3-32b", "qwen3-32b#2"]


def test_without_a_gpu_no_time_is_made_up(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    assert command("plan", *SMALL) == 0
    out = " ".join(capfd.readouterr().out.split())
    assert "not known" in out
    assert "name a GPU with --gpu, or a run with --like" in out


def test_a_chatbot_of_another_host_is_said_to_be_untimed(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    models = ("--simulator", "qwen3-14b", "--chatbot", "mine@http://127.0.0.1:9/v1", "--judge", "qwen3-14b")
    assert command("plan", *models, "--gpu", "H200") == 0
    assert "the time of mine" in " ".join(capfd.readouterr().out.split())


def test_what_does_not_fit_is_told_with_the_remedy(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    assert command("plan", *MODELS, "--gpu", "RTX 4090") == 0
    out = " ".join(capfd.readouterr().out.split())
    assert "It does not fit: qwen3-32b-fp8 needs" in out
    assert "more GPUs" in out


def test_an_unknown_gpu_is_refused_with_the_known_ones(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    assert command("plan", "--gpu", "V100") == 2
    err = capfd.readouterr().err
    assert 'nothing is known of "V100"' in err
    assert all(gpu.name in err for gpu in GPUS)


def test_gpus_without_a_gpu_are_refused(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    assert command("plan", "--gpus", "2") == 2
    assert "name the one that is meant with --gpu" in capfd.readouterr().err


def test_ten_million_conversations_on_many_gpus_are_told(
    command: Command, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    many = ("--gpu", "H200", "--gpus", "64", "--conversations", "10000000", "--gpu-hour-price", "2")
    assert command("plan", *MODELS, *many) == 0
    out = " ".join(capfd.readouterr().out.split())
    for words in (
        "Conversations 10,000,000 of 30 messages each",
        "Workers 64 with 1 GPU each",
        "In all",
        "at 2 for a GPU-hour",
        "300,000,000 messages",
        "40.0 GB of the driver when the results are written",
        "one driver keeps 8,000",
        "at most 400 a second",
        "at the driver",
        "First limit KV cache",
        "Next driver commits",
        "with no cluster of GPUs",
    ):
        assert words in out, words


def test_json_of_a_spread_run_holds_its_limits_in_order(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    short = ("--bundle", "psychosis", "--chatbot", "qwen3-14b", "--judge", "qwen3-14b", "--gpu", "H200")
    assert (
        command("plan", *short, "--gpus", "1000", "--conversations", "1000000", "--gpu-hour-price", "2", "--json") == 0
    )
    told: dict[str, Any] = json.loads(capfd.readouterr().out)
    assert 1_000_000 <= told["conversations"] < 1_000_100, "every persona is met as often as any other"
    spread = told["spread"]
    assert spread["bounds"][0]["name"] == "driver commits"
    assert spread["seconds"] == spread["bounds"][0]["seconds"] > spread["bounds"][1]["seconds"]
    assert spread["cost"] == pytest.approx(spread["seconds"] / 3600 * 1000 * 2)
    assert spread["verdicts"] == pytest.approx(7 * told["conversations"])


def test_how_many_conversations_is_said_once(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    assert command("plan", *SMALL, "--conversations", "100", "--repeats", "3") == 2
    assert "give one of them" in capfd.readouterr().err
    assert command("plan", *SMALL, "--conversations", "0") == 2


def test_a_cluster_of_unknown_speed_is_told_without_a_time(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    assert command("plan", *SMALL, "--conversations", "1000", "--gpu-hour-price", "2") == 0
    out = " ".join(capfd.readouterr().out.split())
    assert "In all not known Cost not known Store" in out
    assert "First limit" not in out


def test_like_takes_a_run(command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    assert command("plan", *SMALL, "--like", folder) == 2
    assert "holds no run" in capfd.readouterr().err
    assert command("run", *SMALL, "--out", folder) == 0
    capfd.readouterr()
    # It ran on this machine, which may have no GPU: then the price is that of its hour.
    assert command("plan", *SMALL, "--like", folder, "--gpu-hour-price", "3") == 0
    told = capfd.readouterr().out
    assert f"those of {folder}" in told
    gpus = this_machine().gpus
    assert f"at 3 for {'a GPU-hour' if gpus else 'an hour of this machine'}" in told
    assert command("plan", "--like", folder, "--bundle", "psychosis") == 2
    assert "name a run of the same bundle" in capfd.readouterr().err
