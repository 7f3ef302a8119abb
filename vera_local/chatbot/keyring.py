"""Keys from the environment: put where a setting names them, and kept out of all that is told. Knows no chatbot."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from vera_local.errors import UserError

NAMED = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
"""How a setting names the environment variable that holds a key."""

SHORTEST = 8
"""Characters from which a value counts as a secret: shorter ones are stand-ins such as `EMPTY`, and ordinary words."""

_SECRET = re.compile(r"key|token|secret|passw|credential|authorization|cookie", re.IGNORECASE)


def names_secret(name: str) -> bool:
    """Whether a header, a parameter or a variable of that name is one that holds a key."""
    return _SECRET.search(name) is not None


class Keyring:
    """The keys of one chatbot, read from `environment` (that of this process unless told otherwise)."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment
        self._secrets: dict[str, str] = {}

    def value(self, name: str) -> str:
        """The key in a variable; UserError where it is empty or no key."""
        key = self._environment.get(name, "").strip()
        if not key:
            raise UserError(f"the environment variable {name} is empty; put the chatbot's key into it")
        if not (key.isascii() and key.isprintable()):
            # Refused here, because the HTTP library would show it in its complaint.
            raise UserError(f"the environment variable {name} holds characters that no key has; correct it")
        self._secrets[name] = key
        return key

    def fill(self, text: str) -> str:
        """`text` with each `env:NAME` replaced by that variable's key; raises as `value`."""
        return NAMED.sub(lambda found: self.value(found[1]), text)

    def watch(self) -> None:
        """Hide, too, what the environment holds for code that reads its keys by itself."""
        self._secrets |= {name: value.strip() for name, value in self._environment.items() if names_secret(name)}

    def hide(self, text: str) -> str:
        """`text` with every key replaced by the name of its variable."""
        for name, key in self._secrets.items():
            if len(key) >= SHORTEST:
                text = text.replace(key, f"[{name}]")
        return text
