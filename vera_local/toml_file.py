"""TOML files, read with one sentence for each way to fail, and tables written as TOML. Knows no key of any."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vera_local.errors import UserError

LARGEST = 1_000_000
"""Bytes of a file that people write by hand."""


def read_toml(file: Path, kind: str) -> dict[str, Any]:
    """The tables of a file; `kind` says what it is ("config"). UserError where it cannot be read."""
    try:
        if file.stat().st_size > LARGEST:
            raise UserError(f"{file}: a {kind} has no more than {LARGEST // 1_000_000} MB; name another file")
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: {_told(error, kind)}") from None
    except OSError as error:
        raise UserError(f"{file}: the {kind} cannot be read ({error.strerror}); correct the path") from None


def _told(error: Exception, kind: str) -> str:
    match error:
        case UnicodeDecodeError():
            return f"this is not a text file in UTF-8, which a {kind} has to be"
        case RecursionError():
            return "its values are nested too deep; write them flat"
        case _:
            return f"this is not valid TOML: {error}; correct that line"


def written(table: Mapping[str, Any]) -> str:
    """A table as TOML that reads back as it is, but for None, which TOML does not have: such keys are left out."""
    plain = {key: value for key, value in table.items() if value is not None and not _nested(value)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if _nested(value):
            head, tables = (f"[{_key(key)}]", [value]) if isinstance(value, Mapping) else (f"[[{_key(key)}]]", value)
            lines += [line for one in tables for line in ("", head, *_settings(one))]
    return "\n".join(lines) + "\n"


def _nested(value: Any) -> bool:
    """Whether it is a table, or a list of tables."""
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)
    )


def _settings(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items() if value is not None]


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case Mapping():
            return f"{{{', '.join(_settings(value))}}}"
        case _:
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
