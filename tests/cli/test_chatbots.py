"""The examples through the command line, what a user reads when a chatbot fails, and where its key is not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chatbot.serving import Served, completions

Command = Callable[..., int]
ROOT = Path(__file__).parents[2]
SMALL = ("--personas", "2", "--turns", "4")
KEY = "s3cret-key-of-the-bot"


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples name each other from there."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")


@pytest.fixture
def example_service() -> Iterator[str]:
    """The URL of examples/http_service.py, running."""
    command = [sys.executable, "examples/http_service.py", "0"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process.stdout.readline().removeprefix("listening at ").strip()
    process.kill()
    process.wait()


def replies(folder: Path) -> list[list[str]]:
    lines = (folder / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
    return [[m["text"] for m in json.loads(line)["messages"] if m["speaker"] == "chatbot"] for line in lines]


def must_be_judged(out: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(out)
    assert told["endings"] == {"turns": 2}
    assert [scores["conversations"] for scores in told["judges"].values()] == [2]
    return told


@pytest.mark.parametrize(
    ("kind", "first"),
    [("python", "That was message 1, of "), ("command", "You wrote "), ("local", "message ")],
)
def test_examples_that_need_nothing_else(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str, first: str
) -> None:
    assert command("run", *SMALL, "--chatbot", f"examples/{kind}.toml", "--out", tmp_path / "run", "--json") == 0
    must_be_judged(capfd.readouterr().out)
    assert all(said[0].startswith(first) for said in replies(tmp_path / "run"))


def test_the_example_of_a_service(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str], example_service: str
) -> None:
    table = (ROOT / "examples" / "http.toml").read_text(encoding="utf-8")
    (tmp_path / "http.toml").write_text(table.replace("http://127.0.0.1:8010", example_service))
    assert command("run", *SMALL, "--chatbot", tmp_path / "http.toml", "--out", tmp_path / "run", "--json") == 0
    must_be_judged(capfd.readouterr().out)
    assert [[text.split()[3] for text in said] for said in replies(tmp_path / "run")] == [["1", "2"]] * 2


def test_the_example_of_recordings(command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    told = ("--bundle", "psychosis", "--personas", "allotment,bus", "--chatbot", "examples/recorded.toml")
    assert command("run", *told, "--out", tmp_path / "run", "--json") == 0
    must_be_judged(capfd.readouterr().out)
    assert [said[0][:10] for said in replies(tmp_path / "run")] == ["That sound", "Thank you "]


@pytest.fixture
def completing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[Path, Served]]:
    """examples/openai.toml, asking a server that is there."""
    monkeypatch.setenv("MY_KEY", KEY)
    served = Served(lambda: completions("my-model", KEY, []))
    table = (ROOT / "examples" / "openai.toml").read_text(encoding="utf-8")
    file = tmp_path / "openai.toml"
    file.write_text(table.replace("http://127.0.0.1:8000", served.url))
    yield file, served
    served.stop()


def test_the_example_of_chat_completions_and_its_key(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str], completing: tuple[Path, Served]
) -> None:
    assert command("run", *SMALL, "--chatbot", completing[0], "--out", tmp_path / "run") == 0
    out, err = capfd.readouterr()
    assert "my-model at http://127.0.0.1" in err
    assert [said[0].startswith("I heard: message") for said in replies(tmp_path / "run")] == [True] * 2
    held = [file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()]
    assert held and not any(KEY.encode() in content for content in held)
    assert KEY not in out + err


def test_a_wrong_key_is_told_without_it(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str], completing: tuple[Path, Served],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("MY_KEY", wrong := "another-key-that-is-wrong")
    assert command("run", *SMALL, "--chatbot", completing[0], "--out", tmp_path / "run") == 2
    err = capfd.readouterr().err
    assert "refuses access (status 401); see to key_env" in err
    assert wrong not in err
    monkeypatch.delenv("MY_KEY")
    assert command("run", *SMALL, "--chatbot", completing[0], "--out", tmp_path / "run") == 2
    assert "the environment variable MY_KEY is empty" in capfd.readouterr().err


def test_a_chatbot_that_is_down_ends_with_code_1_and_a_sentence(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bot.toml").write_text('kind = "command"\ncommand = "false"\nretries = 0\ngive_up_after = 2\n')
    told = ("--personas", "4", "--turns", "4", "--chatbot", tmp_path / "bot.toml", "--out", tmp_path / "run")
    assert command("run", *told) == 1
    err = capfd.readouterr().err
    assert "vera-local: the chatbot is down: 2 conversations in a row got no reply from it, the last because" in err
    assert "its process ended with code 1; see to it; what was finished is kept" in err
    assert "Traceback" not in err


def test_failed_conversations_are_counted_with_their_cause(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bot.toml").write_text('kind = "command"\ncommand = "false"\nretries = 0\n')
    told = ("--personas", "4", "--turns", "4", "--chatbot", tmp_path / "bot.toml", "--out", tmp_path / "run")
    assert command("run", *told) == 1
    out, err = capfd.readouterr()
    assert "chatbot failed: 4" in out and "Why (chatbot): its process ended with code 1" in " ".join(out.split())
    assert "no conversation could be judged" in err


def test_doctor_says_hello(command: Command, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command("doctor", "--chatbot", "examples/command.toml", "--json") in (0, 1)
    found = {f["check"]: f for f in json.loads(capfd.readouterr().out)}
    assert found["example-program chatbot"]["ok"]
    assert "You wrote 6 letters in message 1" in found["example-program chatbot"]["told"]
    assert command("doctor", "--chatbot", "command:false", "--json") == 1
    found = {f["check"]: f for f in json.loads(capfd.readouterr().out)}
    assert "did not answer a greeting: its process ended with code 1" in found["false chatbot"]["told"]
