"""Workers get the keys that a config names, and nothing else of the driver's environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from vera_local.run import load_config
from vera_local.run.cluster.keys import keys_of


def test_every_way_to_name_a_key_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("JUDGE_KEY", "BOT_KEY", "TENANT", "OTHER_SECRET"):
        monkeypatch.setenv(name, f"value of {name}")
    monkeypatch.delenv("MISSING_KEY", raising=False)
    chatbot = {
        "kind": "http",
        "url": "https://bot.example/v1",
        "headers": {"Authorization": "Bearer env:BOT_KEY", "X-Tenant": "env:TENANT"},
        "request": {"text": "{message}", "api_key": "env:MISSING_KEY"},
        "reply": "text",
    }
    judge = {"model": "m", "url": "http://127.0.0.1:9/v1", "key_env": "JUDGE_KEY"}
    config = load_config(None, {"out": tmp_path, "chatbot": chatbot, "judge": [judge]})
    assert keys_of(config) == {name: f"value of {name}" for name in ("BOT_KEY", "TENANT", "JUDGE_KEY")}


def test_without_keys_there_are_none(tmp_path: Path) -> None:
    assert keys_of(load_config(None, {"out": tmp_path})) == {}
