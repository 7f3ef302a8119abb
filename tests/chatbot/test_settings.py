"""What the tables of chatbots refuse, told with the key and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vera_local.chatbot.settings import CommandSettings, HttpSettings, OpenAISettings, PythonSettings, RecordedSettings
from vera_local.errors import UserError
from vera_local.run import load_config
from vera_local.run.roles import ChatbotConfig

HTTP = {"kind": "http", "url": "http://h/talk", "request": {"text": "{message}"}, "reply": "text"}


def read(chatbot: Any) -> Any:
    return load_config(None, {}, {"chatbot": chatbot}).chatbot


@pytest.mark.parametrize(
    ("chatbot", "told"),
    [
        (HTTP | {"kind": "htpp"}, "key chatbot: there is no kind htpp; choose one of 'local', 'openai', 'http'"),
        (HTTP | {"colour": 1}, r"key chatbot\.colour: unknown key; known ones are .*concurrency.*reply"),
        (HTTP | {"start": {"url": "http://h", "x": 1}}, r"key chatbot\.start\.x: unknown key; known ones are url, "),
        ({"kind": "http", "url": "http://h"}, r"key chatbot\.reply: missing, add it"),
        (HTTP | {"url": "ftp://h"}, r"key chatbot\.url: must begin with http:// or https://"),
        (HTTP | {"url": "http://me:pw@h/"}, r"key chatbot\.url: must not hold a login"),
        (HTTP | {"url": "http://h/?api_key=abc"}, r"key chatbot\.url: must not hold a key; put api_key into an env"),
        (HTTP | {"headers": {"Authorization": "Bearer abc"}}, r"headers: must not hold a key; put Authorization"),
        (HTTP | {"headers": {"X-Api-Key": "abc"}}, r"headers: must not hold a key; put X-Api-Key"),
        (HTTP | {"request": {"text": "{message}", "auth": [{"api_key": "abc"}]}}, "must not hold a key; put api_key"),
        (HTTP | {"start": {"url": "http://h", "request": '{"token": "abc"}'}}, "request: must not hold a key; put t"),
        ({"kind": "openai", "model": "m", "url": "http://h", "extra": {"api_key": "abc"}}, "must not hold a key; put"),
        ({"kind": "command", "command": "bot --api-key abc"}, "must not hold a key; let the program read --api"),
        ({"kind": "command", "command": "env API_KEY=abc bot"}, "must not hold a key; let the program read API_KEY"),
        ({"kind": "command", "command": "bot", "name": "a\u202eb"}, r"name: holds the character U\+202E, which nobody"),
        ({"kind": "command", "command": "bot --token=abc"}, "must not hold a key; let the program read --token"),
        (HTTP | {"headers": {"X": "ä"}}, r"headers: x holds characters that no header may hold"),
        (HTTP | {"request": {"text": "{massage}"}}, r"request: \{massage\} is no place to fill"),
        (HTTP | {"request": {"text": "hi"}}, r'request has to hold "\{message\}" or "\{history\}"'),
        (HTTP | {"method": "GET", "request": {"h": "{history}"}}, "write request as a table of single values"),
        (HTTP | {"history_item": {"r": "{who}"}}, r"history_item: \{who\} is no place to fill"),
        (HTTP | {"timeout": 0}, r"key chatbot\.timeout: "),
        (HTTP | {"retries": True}, r"key chatbot\.retries: must be a whole number"),
        ({"kind": "python", "factory": "x"}, r"key chatbot\.factory: write package\.module:name"),
        ({"kind": "command", "command": ""}, r"key chatbot\.command: "),
        ({"kind": "openai", "model": "m"}, r"key chatbot\.url: missing"),
        ({"kind": "local", "model": "m", "url": "http://h"}, r"key chatbot\.url: "),
        (5, "key chatbot: "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(chatbot: Any, told: str) -> None:
    with pytest.raises(UserError, match=told) as caught:
        read(chatbot)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "chatbot",
    [
        HTTP | {"request": {"text": "{message}", "api_key": "env:KEY", "token": "{session}", "max_tokens": "5"}},
        {"kind": "openai", "model": "m", "url": "http://h", "extra": {"tokenizer": "x", "max_tokens": 5, "key": ""}},
        {"kind": "command", "command": "bot --max-tokens 5 --tokenizer gpt2 --verbose-key --seed 1"},
    ],
)
def test_what_is_no_key_is_taken(chatbot: Any) -> None:
    assert read(chatbot)


def test_a_table_without_a_kind_is_a_models() -> None:
    assert isinstance(read({"model": "m"}), ChatbotConfig)
    assert isinstance(read({"model": "m", "url": "http://h/v1", "key_env": "K"}), OpenAISettings)
    assert isinstance(read("m@http://h/v1"), OpenAISettings)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("python:pkg.mod:make", PythonSettings(factory="pkg.mod:make")),
        ("command:bot 'a b' -c", CommandSettings(command=("bot", "a b", "-c"))),
        ("recorded:runs/x", RecordedSettings(path=Path("runs/x"))),
    ],
)
def test_kinds_that_one_key_tells_have_a_short_form(text: str, meant: Any) -> None:
    assert read(text) == meant


@pytest.mark.parametrize("head", ["", "[chatbot]\n"])
def test_a_file_holds_the_table_of_a_chatbot_or_a_config(tmp_path: Path, head: str) -> None:
    file = tmp_path / "bot.toml"
    file.write_text(head + 'kind = "http"\nurl = "http://h"\nreply = "r"\nrequest = {t = "{message}"}\n')
    assert isinstance(load_config(None, {"chatbot": str(file)}).chatbot, HttpSettings)


def test_what_is_wrong_in_a_file_is_told_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "bot.toml"
    file.write_text('kind = "http"\nurl = "h"\nreply = "r"\nrequest = {t = "{message}"}\n')
    with pytest.raises(UserError, match=rf"^--chatbot {file}: key url: must begin with http"):
        load_config(None, {"chatbot": str(file)})
    file.write_text('kind = "htpp"\n')
    with pytest.raises(UserError, match=rf"^--chatbot {file}: there is no kind htpp; choose one of"):
        load_config(None, {"chatbot": str(file)})
    file.write_text("kind = ")
    with pytest.raises(UserError, match=rf"^{file}: this is not valid TOML"):
        load_config(None, {"chatbot": str(file)})


def test_a_profile_of_a_model_is_still_one(tmp_path: Path) -> None:
    file = tmp_path / "model.toml"
    file.write_text('name = "m"\n')
    assert load_config(None, {"chatbot": str(file)}).chatbot == ChatbotConfig(model=str(file))


def test_a_config_survives_being_written_down() -> None:
    config = load_config(None, {}, {"chatbot": HTTP | {"start": {"url": "http://h/s", "session": "id"}}})
    assert load_config(None, {}, config.model_dump(mode="json")) == config


@pytest.mark.parametrize(
    ("chatbot", "title"),
    [
        (HTTP, "h"),
        (HTTP | {"name": "Bot 2"}, "Bot 2"),
        ("m@http://h/v1", "m"),
        ("command:python3 x/bot.py -v", "python3 bot.py"),
        ("recorded:runs/x", "recorded in x"),
    ],
)
def test_a_chatbot_has_a_name(chatbot: Any, title: str) -> None:
    assert read(chatbot).title == title
