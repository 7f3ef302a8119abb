"""Keys from the environment, put where a setting names them, and what was said: kept out of all that is told. Knows no
chatbot."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import quote, quote_plus

from vera_local.errors import UserError
from vera_local.unquoted import unquoted

NAMED = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
"""How a setting names the environment variable that holds a key."""

SHORTEST = 8
"""Characters from which a value counts as a secret: shorter ones are stand-ins such as `EMPTY`, and ordinary words."""

TOLD = 200
"""Characters of another's own words that are told."""

_said: ContextVar[tuple[str, ...]] = ContextVar("said", default=())
"""What the request that is under way says: its failure is told deep within it, where nobody knows."""

_SECRET = re.compile(r"key|token|secret|passw|credential|authorization|cookie", re.IGNORECASE)


_SECRET_VALUE = re.compile(
    r"(?:^|[-_])(?:(?:api|access|auth|secret|private|subscription)[-_]?key|key|(?:access|api|auth|bearer)[-_]?token"
    r"|token|secret|password|passwd|credentials?|authorization)$",
    re.IGNORECASE,
)


def names_key(name: str) -> bool:
    """Whether what has that name in a request or on a command line is a key; `max_tokens` is none."""
    return _SECRET_VALUE.search(name) is not None


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

    def fill_whole(self, text: str) -> str:
        """As `fill`, where `text` is an `env:NAME` and nothing else; any other text as it is."""
        return self.fill(text) if NAMED.fullmatch(text) else text

    def watch(self) -> None:
        """Hide, too, what the environment holds for code that reads its keys by itself."""
        self._secrets |= {name: value.strip() for name, value in self._environment.items() if names_secret(name)}

    def hide(self, text: str) -> str:
        """`text` with every key replaced by the name of its variable, as it is or as URLs and JSON write it."""
        # The longest first: one key may begin with another.
        for name, key in sorted(self._secrets.items(), key=lambda item: -len(item[1])):
            if len(key) >= SHORTEST:
                for written in _ways_to_write(key):
                    text = text.replace(written, f"[{name}]")
        return text

    @contextmanager
    def unsaid(self, said: Iterable[str]) -> Iterator[None]:
        """Keep out, too, what is said meanwhile: who fails at a message often quotes it."""
        before = _said.set(tuple(said))
        try:
            yield
        finally:
            _said.reset(before)

    def told(self, text: str) -> str:
        """The beginning of another's words, on one line. Keys are hidden first: half a key would not be known.

        A `?` stands for half of a surrogate pair, which no file can hold.
        """
        line = self.hide(" ".join(text.encode(errors="replace").decode().split()))
        return unquoted(line, _said.get())[:TOLD]


def _ways_to_write(key: str) -> tuple[str, ...]:
    escaped = json.dumps(key)[1:-1]
    return (key, escaped, escaped.replace("/", "\\/"), quote(key, safe=""), quote(key), quote_plus(key))
