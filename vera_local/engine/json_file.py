"""JSON files of a model folder, read with one sentence for each way to fail. Knows no key of any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vera_local.errors import UserError

LARGEST = 64_000_000
"""Bytes; the largest index of weights, and every config, is far below."""


def read_object(path: Path) -> dict[str, Any]:
    """The object in a file; UserError where there is none or it is too large to be one of a model."""
    try:
        if path.stat().st_size > LARGEST:
            raise UserError(
                f"{path} is larger than {LARGEST // 1_000_000} MB, so it is none of a model: fetch it again"
            )
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read as JSON ({error}): fetch the model again") from None
    if not isinstance(table, dict):
        raise UserError(f"{path} holds no JSON object: fetch the model again")
    return table
