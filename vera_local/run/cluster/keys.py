"""The keys that a config names by their environment variables, for processes elsewhere. Knows not what they open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from vera_local.chatbot.keyring import NAMED
from vera_local.run.config import RunConfig


def keys_of(config: RunConfig) -> dict[str, str]:
    """Variable -> value of each that the config names (`key_env = "NAME"`, `env:NAME`) and this process has."""
    return {name: os.environ[name] for name in _named(config.model_dump(mode="json")) if name in os.environ}


def _named(value: Any) -> Iterator[str]:
    match value:
        case dict():
            if isinstance(name := value.get("key_env"), str):
                yield name
            for inner in value.values():
                yield from _named(inner)
        case list():
            for inner in value:
                yield from _named(inner)
        case str():
            yield from NAMED.findall(value)
