"""The list of model profiles. Loads no model."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from vera_local.engine.machine import Machine, fit, this_machine
from vera_local.engine.profile import Profile, list_profiles
from vera_local.engine.source import locate
from vera_local.errors import UserError

LEGEND = (
    "GPU: the smallest it is meant for. KV room: tokens left for conversations beside the weights. "
    "A model folder or a .toml profile of your own works wherever a name does."
)


def show(*, as_json: bool) -> None:
    """Print every shipped profile with what this machine makes of it."""
    machine = this_machine()
    rows = [_row(profile, machine) for profile in list_profiles()]
    if as_json:
        print(json.dumps({"machine": asdict(machine), "models": rows}))
        return
    console = Console()
    console.print(_told(machine), highlight=False)
    console.print(_table(rows))
    console.print(
        "Name a model by its profile, or give a model folder or a .toml profile of your own.", highlight=False
    )


def _row(profile: Profile, machine: Machine) -> dict[str, Any]:
    judged = fit(profile, machine)
    return {
        "name": profile.name,
        "title": profile.title,
        "licence": profile.licence,
        "weight_gb": profile.weight_gb,
        "kv_bytes_per_token": profile.kv_bytes_per_token,
        "context": profile.context,
        "gpu_gb": profile.fits.gpu_gb if profile.fits else None,
        "here": _present(profile),
        "fits": judged.fits,
        "kv_tokens": judged.kv_tokens,
        "reason": judged.reason,
    }


def _present(profile: Profile) -> bool:
    """Whether the model's files are on this machine; the embedded one is made from its package when first used."""
    if profile.source.embedded is not None:
        return True
    try:
        locate(profile)
    except UserError:
        return False
    return True


def _told(machine: Machine) -> str:
    many = f"{machine.gpus} x " if machine.gpus > 1 else ""
    return f"This machine: {many}{machine.name}, {machine.memory_bytes / 1e9:.0f} GB ({machine.device})"


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("model", "weights", "context", "GPU", "files", "KV room here"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['weight_gb']:.1f} GB",
            str(row["context"]),
            f"{row['gpu_gb']} GB" if row["gpu_gb"] else "-",
            "here" if row["here"] else "missing",
            str(row["kv_tokens"]) if row["fits"] else "does not fit",
        )
    return table
