"""The command that tells what a run used and what that cost. Thin, as all commands."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from vera_local.cli.console import HarmlessConsole
from vera_local.cli.options import Json, Price, Run
from vera_local.errors import UserError
from vera_local.report.cost import cost_json, cost_lines
from vera_local.report.usage import as_json as work_json
from vera_local.report.usage_terminal import recorded, unrecorded
from vera_local.run.stats import cost_of, work_of

app = typer.Typer()

Gpus = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="How many GPUs are paid; those of the run's machine if left out.")
]


@app.command()
def stats(folder: Run, gpu_hour_price: Price = None, gpus: Gpus = None, as_json: Json = False) -> None:
    """Requests, tokens, time and memory that a run took, by stage and role, and what it cost."""
    if gpus is not None and gpu_hour_price is None:
        raise UserError("--gpus is how many GPUs to pay, so it goes with --gpu-hour-price; name the price, too")
    work = work_of(folder)
    cost = None if gpu_hour_price is None else cost_of(work, gpu_hour_price, gpus)
    if as_json:
        told = {"run": str(folder), **work_json(work), "cost": None if cost is None else cost_json(cost)}
        print(json.dumps(told, ensure_ascii=False))
        return
    console = HarmlessConsole()
    for part in (*(recorded(work) if work.rows else unrecorded(work)), *([] if cost is None else cost_lines(cost))):
        console.print(part, highlight=False, markup=False, soft_wrap=isinstance(part, str))
