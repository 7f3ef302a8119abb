"""The config that a manifest keeps: found whole from any folder, with all its judges. Knows nothing else of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vera_local.errors import UserError
from vera_local.run.config import SPREAD, RunConfig
from vera_local.run.roles import JudgeConfig
from vera_local.run.seats import judge_name, judges_of

PATHS = {"model", "system_prompt", "path"}
"""Settings of a role that may name a file or folder."""


def kept_config(config: RunConfig) -> dict[str, Any]:
    """The config with absolute paths, so that a run is found whole from any folder."""
    kept: dict[str, Any] = config.model_dump(mode="json", exclude=set(SPREAD))
    kept["bundle"] = _absolute(kept["bundle"])
    simulators = kept["simulator"]
    kept["chatbot"] = _found(kept["chatbot"])
    kept["simulator"] = [*map(_found, simulators)] if isinstance(simulators, list) else _found(simulators)
    kept["judge"] = None if config.judge is None else [_judge_table(judge) for judge in config.judge]
    return kept


def _found(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a role with absolute paths."""
    return {k: _absolute(v) if k in PATHS else v for k, v in table.items()}


def with_judges(stored: Mapping[str, Any], config: RunConfig) -> list[dict[str, Any]]:
    """The judges of a stored config and those of another, so that `vera-local judge RUN` knows them all."""
    before = RunConfig.model_validate({"judge": stored["judge"]}).judge or ()
    judges = {_called(judge): judge for judge in before}
    for judge in judges_of(config):
        name = judge_name(judge)
        repeats = max(judge.repeats, judges[name].repeats if name in judges else 1)
        judges[name] = judge.model_copy(update={"repeats": repeats})
    return [_judge_table(judge) for judge in judges.values()]


def _called(judge: JudgeConfig) -> str:
    """The name of a judge that took part; its model may be gone by now."""
    try:
        return judge_name(judge)
    except UserError:
        return f"{judge.model}:{judge.mode}"


def _judge_table(judge: JudgeConfig) -> dict[str, Any]:
    table = judge.model_dump(mode="json")
    return table | {"model": _absolute(table["model"])}


def _absolute(place: str | None) -> str | None:
    """A path that exists as an absolute one; a name as it is."""
    return str(Path(place).absolute()) if place is not None and Path(place).exists() else place
