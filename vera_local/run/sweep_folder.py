"""What lies in the folder of a sweep, by its names. Knows no file's contents."""

from __future__ import annotations

import re
from pathlib import Path

from vera_local.run.folder import ENGINE_LOG
from vera_local.run.network import LOG
from vera_local.run.sweep_notes import NAME as NOTES

POOLS = "pools"
"""The folder beside the runs for those of several seeds together."""

# A file that a process was killed over while it wrote has a point before its name, and more behind.
_OWN = re.compile(
    rf"[^.].*--.+--.+--seed\d+|{POOLS}|{re.escape(ENGINE_LOG)}|{re.escape(LOG)}"
    rf"|comparison-.+\.(html|json)|\.(comparison-.+|{re.escape(NOTES)})\..+"
)


def is_own(name: str) -> bool:
    """Whether something of this name is a run of a sweep, or what a sweep puts beside its runs."""
    return _OWN.fullmatch(name) is not None


def comparison_files(out: Path, bundle: str) -> tuple[Path, Path]:
    """The page and the JSON of the comparison on a bundle."""
    return out / f"comparison-{bundle}.html", out / f"comparison-{bundle}.json"
