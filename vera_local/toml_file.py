"""TOML files that a user writes, read with one sentence for each way to fail. Knows no key of any."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from vera_local.errors import UserError


def read_toml(file: Path, kind: str) -> dict[str, Any]:
    """The tables of a file; `kind` says what it is ("config"). UserError where it cannot be read."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file}: this is not valid TOML: {error}; correct that line") from None
    except UnicodeDecodeError:
        raise UserError(f"{file}: this is not a text file in UTF-8, which a {kind} has to be") from None
    except OSError as error:
        raise UserError(f"{file}: the {kind} cannot be read ({error.strerror}); correct the path") from None
