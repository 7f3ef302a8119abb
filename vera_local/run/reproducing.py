"""How a run is made again: the commands, and the config they take. Knows no run folder beyond its manifest."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from vera_local.toml_file import written

CONFIG = "run.toml"
NEW = "NEW"
"""Stands in the commands for the folder to make."""


class Again(NamedTuple):
    """Commands in their order, and the text of the file CONFIG that they need; empty: they need none."""

    commands: tuple[str, ...]
    config: str


def again(manifest: Mapping[str, Any]) -> Again:
    """What makes a run like the one of this manifest: same settings, same seed."""
    config = {key: value for key, value in manifest["config"].items() if key != "out"}
    if "imported" in manifest["identity"]:
        return Again(tuple(_imported(config)), "")
    if manifest["judges"]:
        return Again((f"vera-local run --config {CONFIG} --out {NEW}",), written(config))
    del config["judge"]
    return Again((f"vera-local simulate --config {CONFIG} --out {NEW}",), written(config))


def _imported(config: Mapping[str, Any]) -> Iterator[str]:
    options = {"--bundle": config["bundle"], "--target": config.get("target")}
    if config.get("end_semantics", "fixed") != "fixed":
        options["--end-semantics"] = config["end_semantics"]
    yield f"vera-local import THE_FILES_BELOW{_flags(options)} --out {NEW}"
    for judge in config.get("judge") or ():
        yield f"vera-local judge {NEW}{_flags(_judge(judge))}"


def _judge(table: Mapping[str, Any]) -> dict[str, Any]:
    """The options that the command has for a judge; what else its table sets stands in the manifest."""
    url = table.get("url") or ""
    return {
        "--judge": "@".join(filter(None, (table["model"], url if isinstance(url, str) else ",".join(url)))),
        "--judge-mode": table["mode"] if table.get("mode", "direct") != "direct" else None,
        "--judge-repeats": table["repeats"] if table.get("repeats", 1) > 1 else None,
        "--judge-window": "" if table.get("window") else None,
        "--no-evidence": None if table.get("evidence", True) else "",
        "--no-confidence": None if table.get("confidence", True) else "",
    }


def _flags(options: Mapping[str, Any]) -> str:
    given = {name: value for name, value in options.items() if value is not None}
    return "".join(f" {name} {shlex.quote(str(value))}" if value != "" else f" {name}" for name, value in given.items())
