from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command
from vera_local.engine import plain_data
from vera_local.engine.profile import find_profile

OWN = """
name = "own"
title = "Own"
licence = "none"
weight_gb = 1.0
kv_bytes_per_token = 1000
context = 8192
source = {{ path = "{folder}" }}
engine = {{ dtype = "bfloat16", trust_remote_code = {asks} }}
template = {{ system_role = true, thinking = "none" }}

[roles]
simulator = {{ temperature = 0.8, top_p = 0.95, max_tokens = 400 }}
chatbot = {{ temperature = 0.8, top_p = 0.95, max_tokens = 400 }}
judge = {{ temperature = 0.0, top_p = 1.0, max_tokens = 400 }}
"""


@pytest.fixture(autouse=True)
def nobody_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_data, "_confirmed", set())


def own(folder: Path, asks: str) -> Path:
    file = folder / "own.toml"
    file.write_text(OWN.format(folder=folder, asks=asks), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", ["run", "simulate", "doctor", "selftest", "judge", "plan"])
def test_every_command_that_loads_models_takes_the_flag(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    file = own(tmp_path, "false")
    run = [tmp_path] if name == "judge" else []
    assert command(name, *run, "--trust-remote-code", file) == 2
    assert "does not ask to run code" in capfd.readouterr().err


def test_the_flag_confirms_the_model_that_asks(command: Command, tmp_path: Path) -> None:
    file = own(tmp_path, "true")
    assert command("plan", "--judge", file, "--trust-remote-code", file) == 0
    profile = find_profile(str(file))
    assert plain_data._confirmed == {(profile.name, profile.source)}
