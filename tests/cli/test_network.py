"""The guard of the command line as its user meets it, with a chatbot in Python that asks for another machine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from vera_local.engine.attempts import read

Process = Callable[..., "subprocess.CompletedProcess[str]"]

BOT = """\
import socket

def reply(message, history):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far:
        try:
            far.connect(("192.0.2.7", 9))
        except PermissionError:
            return "refused"
        except OSError:
            pass
    return "reached"

def make():
    return reply
"""

# Its personas are scripted, so that no model is needed.
RUN = ("simulate", "--bundle", "psychosis", "--personas", "1", "--out", "run")


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "far_bot.py").write_text(BOT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    return tmp_path


def said(folder: Path) -> str:
    (line,) = (folder / "run" / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
    return str(json.loads(line)["messages"][-1]["text"])


def network(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "run" / "manifest.json").read_text())["network"]
    return found


def test_what_is_not_named_is_refused_logged_and_fails_the_run(bot: Path, process: Process) -> None:
    done = process(*RUN, "--chatbot", "python:far_bot:make")
    assert done.returncode == 1
    assert "network  this machine; anything beyond is refused" in done.stderr
    assert "to reach something beyond this machine, such as connect 192.0.2.7:9" in done.stderr
    assert "--guard log" in done.stderr and "Traceback" not in done.stderr
    (attempt,) = read(bot / "run" / "network.log")
    assert attempt.verdict == "refused"
    assert any("far_bot.py:6 reply" in call for call in attempt.stack)
    assert network(bot) == {"guard": "refuse", "hosts": [], "attempts": {"refused": 1, "let through": 0}}
    again = process(*RUN, "--chatbot", "python:far_bot:make")
    assert again.returncode == 0, again.stderr
    assert "1 attempt beyond this machine in earlier starts of this run" in again.stderr
    assert said(bot) == "refused"


def test_with_guard_log_it_goes_through_and_is_told(bot: Path, process: Process) -> None:
    done = process(*RUN, "--chatbot", "python:far_bot:make", "--guard", "log")
    assert done.returncode == 0, done.stderr
    assert "1 attempt beyond this machine, let through as asked" in done.stderr
    assert [a.verdict for a in read(bot / "run" / "network.log")] == ["let through"]
    assert said(bot) == "reached"


def test_a_host_that_the_config_names_is_reached_and_recorded(bot: Path, process: Process) -> None:
    config = '[chatbot]\nkind = "python"\nfactory = "far_bot:make"\nhosts = ["192.0.2.7"]\n'
    (bot / "run.toml").write_text(config, encoding="utf-8")
    done = process(*RUN, "--config", "run.toml")
    assert done.returncode == 0, done.stderr
    assert "network  this machine and 192.0.2.7; anything beyond is refused" in done.stderr
    assert said(bot) == "reached"
    attempts = {"refused": 0, "let through": 0}
    assert network(bot) == {"guard": "refuse", "hosts": ["192.0.2.7"], "attempts": attempts}
    assert not (bot / "run" / "network.log").exists()


def test_an_unknown_guard_is_refused_with_the_choices(bot: Path, process: Process) -> None:
    done = process(*RUN, "--chatbot", "python:far_bot:make", "--guard", "off")
    assert done.returncode == 2
    assert "--guard off" in done.stderr and "refuse" in done.stderr


def test_the_proof_goes_with_no_other_model(process: Process) -> None:
    done = process("doctor", "--offline", "--judge", "qwen3-8b")
    assert done.returncode == 2
    assert "--offline: evaluates with the embedded model" in done.stderr
