"""A config from its TOML file or from a stored run, with flags over it. Knows no key of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vera_local.errors import UserError
from vera_local.run.complaints import complaint
from vera_local.run.config import RunConfig
from vera_local.run.flags import settings
from vera_local.toml_file import read_toml


def load_config(file: Path | None, flags: Mapping[str, Any], stored: Mapping[str, Any] | None = None) -> RunConfig:
    """The config of `file`, or one that a run `stored`, with `flags` over it; a flag that is None was not given.

    Raises UserError naming the file and key, or the flag, that is wrong.
    """
    given = {key: value for key, value in flags.items() if value is not None}
    table = read_toml(file, "config") if file is not None else dict(stored or {})
    source = "the config of the run" if file is None else str(file)
    try:
        return RunConfig.model_validate(table | settings(given))
    except ValidationError as error:
        raise UserError(complaint(error, source, table, given)) from None
