"""The list of model profiles, and whether their files are what they were. Loads no model."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from vera_local.cli.console import HarmlessConsole
from vera_local.cli.options import Json
from vera_local.engine.embedded import converted
from vera_local.engine.machine import Machine, fit, this_machine
from vera_local.engine.profile import Profile, find_profile, list_profiles
from vera_local.engine.source import locate
from vera_local.engine.verify import verify as verify_files
from vera_local.errors import UserError
from vera_local.run.model_files import files_of_run, profile_in_run

app = typer.Typer()

LEGEND = (
    "GPU: the smallest it is meant for. KV room: tokens left for conversations beside the weights. "
    "A model folder or a .toml profile of your own works wherever a name does."
)


Model = Annotated[
    str | None,
    typer.Argument(metavar="MODEL", help="A profile's name, a .toml profile or a model folder; without it all there."),
]
Against = Annotated[
    Path | None, typer.Option(metavar="RUN", help="Compare with the files that this run was made with.")
]


@app.callback(invoke_without_command=True)
def models(context: typer.Context, as_json: Json = False) -> None:
    """List the model profiles and what fits this machine."""
    if context.invoked_subcommand is None:
        show(as_json=as_json)


@app.command()
def verify(model: Model = None, against: Against = None, as_json: Json = False) -> None:
    """Hash a model's files anew, and compare. Exit code 1 where they differ from a run's, or are not whole."""
    told = [_verified(profile, expected) for profile, expected in _wanted(model, against)]
    if as_json:
        print(json.dumps(told))
    else:
        _print_verified(told)
    raise typer.Exit(1 if any(one["faults"] for one in told) else 0)


def _wanted(model: str | None, against: Path | None) -> list[tuple[Profile, dict[str, str] | None]]:
    """The models to look at, each with the digests that a run has of it."""
    if against is None:
        found = [find_profile(model)] if model else [p for p in list_profiles() if _here(p)]
        if not found:
            raise UserError("no model of a shipped profile is on this machine; name a model or a model folder")
        return [(profile, None) for profile in found]
    known = files_of_run(against)
    profiles = [find_profile(model)] if model else [profile_in_run(against, name) for name in known]
    if unknown := [profile.name for profile in profiles if profile.name not in known]:
        names = ", ".join(known) or "none on this machine"
        raise UserError(f"{against} was not made with {unknown[0]}; its models are: {names}")
    if not profiles:
        raise UserError(f"{against} was made without a model on this machine; leave out --against and name a model")
    return [(profile, known[profile.name]) for profile in profiles]


def _here(profile: Profile) -> bool:
    """Whether the model's files can be hashed as they are; the embedded one may yet have to be made."""
    try:
        return converted() is not None if profile.source.embedded is not None else _present(profile)
    except UserError:
        return False


def _verified(profile: Profile, expected: dict[str, str] | None) -> dict[str, Any]:
    folder = locate(profile)
    found = verify_files(folder, expected)
    return {
        "model": profile.name,
        "folder": str(folder),
        "compared": expected is not None,
        "files": dict(found.digests),
        "faults": list(found.faults),
    }


def _print_verified(told: list[dict[str, Any]]) -> None:
    console = HarmlessConsole()
    for one in told:
        lines = [f"{one['model']} ({one['folder']})"]
        lines += [f"  {digest}  {name}" for name, digest in one["files"].items()]
        well = "the same files as in the run" if one["compared"] else "the weights are whole"
        lines += [f"  DIFFERS: {fault}" for fault in one["faults"]] or [f"  ok: {well}"]
        for line in lines:
            console.print(line, highlight=False, markup=False, soft_wrap=True)


def show(*, as_json: bool) -> None:
    """Print every shipped profile with what this machine makes of it."""
    machine = this_machine()
    rows = [_row(profile, machine) for profile in list_profiles()]
    if as_json:
        print(json.dumps({"machine": asdict(machine), "models": rows}))
        return
    console = HarmlessConsole()
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
