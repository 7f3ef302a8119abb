"""The ways to name a chatbot in a config or on the command line, as one table each. Checks no key of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vera_local.chatbot import External
from vera_local.chatbot.settings import CommandSettings, HttpSettings, OpenAISettings, PythonSettings, RecordedSettings
from vera_local.data import is_place
from vera_local.toml_file import read_toml

KINDS: dict[str, type[External]] = {
    "openai": OpenAISettings,
    "http": HttpSettings,
    "python": PythonSettings,
    "command": CommandSettings,
    "recorded": RecordedSettings,
}
"""What a chatbot can be besides a model that is hosted here."""

_PREFIXES = {"python": "factory", "command": "command", "recorded": "path"}
"""Kinds of which one key tells all -> that key; `KIND:VALUE` is short for a table with it."""


def chatbot_table(value: Any, model_table: Callable[[str], Any]) -> Any:
    """A table with its kind, from text or from a table without one; `model_table` reads a text that names a model.

    A text is KIND:VALUE, a TOML file with a chatbot's table, or a model. A table without a kind is a model's: one
    that a server offers where it has a url. Raises UserError for a file that cannot be read.
    """
    if isinstance(value, str):
        value = _from_text(value) or model_table(value)
    if isinstance(value, Mapping) and isinstance(value.get("url"), list):
        raise ValueError("a chatbot has one url; put what spreads the load in front of several servers, and name that")
    if isinstance(value, Mapping) and "kind" not in value:
        return {"kind": "openai" if "url" in value else "local", **value}
    return value


def _from_text(text: str) -> Any:
    """The table that a text names; None where it names a model."""
    kind, colon, rest = text.partition(":")
    if colon and kind in _PREFIXES:
        return {"kind": kind, _PREFIXES[kind]: rest}
    return _from_file(Path(text)) if text.endswith(".toml") else None


def _from_file(file: Path) -> Any:
    """The table of a chatbot in a file of its own, or in a config; None for a model's profile."""
    if not is_place(file):
        # It may be the name of a profile.
        return None
    held = read_toml(file, "chatbot's table")
    return held.get("chatbot", held if "kind" in held else None)
