"""What a run would ask, take and cost, printed before it is made. Computes nothing, and starts no engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from vera_local.cli.console import HarmlessConsole
from vera_local.cli.reach import as_json as reach_json
from vera_local.cli.reach import lines
from vera_local.engine.gpus import GPUS, Gpu, find_gpu
from vera_local.engine.machine import Machine, this_machine
from vera_local.errors import UserError
from vera_local.report.cost import money
from vera_local.run import Plan
from vera_local.run.forecast import Forecast, forecast
from vera_local.run.likeness import likeness
from vera_local.run.reach import ASSUMED, Reach, reach, shape_of
from vera_local.run.rehearsal import CHECKING
from vera_local.run.rulers import Rulers
from vera_local.run.timing import Line

ESTIMATE = (
    "This is an estimate. Times from a data sheet are arithmetic that was compared with no run on a GPU; `--like RUN` "
    "takes them from a run that was held."
)


def show(
    plan: Plan,
    gpu: str | None,
    gpus: int | None,
    like: Path | None,
    price: float | None,
    *,
    spread: bool,
    as_json: bool,
) -> None:
    """Print the forecast of a plan, whose run is on one machine or `spread` over workers that share the GPUs.

    Raises UserError for an unknown GPU and for a run that tells nothing.
    """
    machine, known = _machine(gpu, gpus)
    workers, share, part = shape_of(plan, machine) if spread else (1, plan, machine)
    told = asyncio.run(_forecast(share, part, known, like))
    beyond = reach(told, workers, machine.gpus) if spread else None
    if as_json:
        print(json.dumps(_as_json(told, price) | ({} if beyond is None else {"spread": reach_json(beyond, price)})))
        return
    console = HarmlessConsole()
    for item in (*_head(told, beyond), _roles(told), *_engines(told), *_result(told, beyond, price)):
        console.print(item, highlight=False, markup=False, soft_wrap=isinstance(item, str))


def repeats_for(conversations: int, plan: Plan) -> int:
    """How often each persona is to be met for at least so many conversations, in a plan like this one."""
    return -(-conversations * plan.config.repeats // plan.count)


async def _forecast(plan: Plan, machine: Machine, gpu: Gpu | None, folder: Path | None) -> Forecast:
    rulers = Rulers()
    like = None if folder is None else await likeness(folder, rulers)
    return await forecast(plan, rulers, machine, gpu, like)


def _machine(name: str | None, gpus: int | None) -> tuple[Machine, Gpu | None]:
    """The machine that is asked about, and what is known of its GPUs' speed."""
    if name is not None:
        gpu = find_gpu(name)
        if gpu is None:
            known = ", ".join(gpu.name for gpu in GPUS)
            raise UserError(f'--gpu: nothing is known of "{name}"; the known ones are {known}')
        return Machine("cuda", gpu.name, gpu.memory_bytes, gpus or 1), gpu
    here = this_machine()
    if here.device == "cpu":
        if gpus is not None:
            raise UserError("--gpus: this machine has no GPU; name the one that is meant with --gpu")
        return here, None
    return replace(here, gpus=gpus or here.gpus), find_gpu(here.name)


def _head(told: Forecast, beyond: Reach | None) -> Iterator[str]:
    plan, machine = told.plan, told.machine
    many = f"{machine.gpus} x " if machine.gpus > 1 else ""
    yield f"Bundle          {plan.bundle.title} {plan.bundle.version}"
    yield f"Conversations   {plan.count:,} of {plan.turns} messages each"
    yield f"Machine         {many}{machine.name}, {machine.memory_bytes / 1e9:.0f} GB ({machine.device})"
    if beyond is not None:
        yield f"{'':<16}Those of one worker, and below the work of all, as one alone would do it"
    yield ""


def _roles(told: Forecast) -> Table:
    """What each role asks."""
    table = Table(box=None, pad_edge=False)
    table.add_column("role, model", overflow="fold")
    # Prompt tokens are those computed and those cached.
    for heading in ("requests", "computed", "cached", "written", "KV each", "at once", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    for line in told.lines:
        part, work = line.part, line.part.work
        counts = (work.requests, work.computed, work.cached, work.output, part.held)
        at_once = "-" if line.at_once is None else f"{line.at_once:,}"
        # Nine columns would be too many for a terminal.
        name, seconds = Text(f"{_role(line)}\n  {part.name}"), "-" if line.seconds is None else _time(line.seconds)
        table.add_row(name, *map(_count, counts), at_once, seconds)
    return table


def _role(line: Line) -> str:
    return line.part.place.stage if line.part.place.stage == CHECKING else line.part.place.role


def _count(number: float) -> str:
    """Short enough for one of many columns."""
    if number < 10_000:
        return f"{number:,.0f}"
    if number < 1e6:
        return f"{number / 1e3:,.0f} k"
    return f"{number / 1e6:,.1f} M" if number < 1e9 else f"{number / 1e9:,.0f} G"


def _engines(told: Forecast) -> Iterator[Table | str]:
    """What each model takes of the machine, and how they share it."""
    yield ""
    if told.housing.problem:
        yield f"It does not fit: {told.housing.problem}."
        return
    if not told.housing.engines or told.housing.arrangement is None:
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("engine", overflow="fold")
    for heading in ("weights", "engines", "GPUs", "tokens in the KV cache of each"):
        table.add_column(heading, justify="right")
    for engine in told.housing.engines.values():
        kv = "as it finds room" if engine.kv_tokens is None else f"{engine.kv_tokens:,}"
        weights, gpus = f"{engine.weights_bytes / 1e9:.1f} GB", str(len(engine.gpus) or "-")
        table.add_row(engine.name, weights, str(len(engine.places)), gpus, kv)
    yield table
    yield ""
    yield f"Residency       {told.housing.arrangement.residency}: {told.housing.arrangement.reason}"


def _result(told: Forecast, beyond: Reach | None, price: float | None) -> Iterator[str]:
    yield ""
    yield from _alone(told, price) if beyond is None else lines(beyond, price, _time)
    yield from _notes(told)
    yield ""
    yield "It rests on:"
    yield from (f"- {sentence}" for sentence in (*told.assumptions, *(() if beyond is None else ASSUMED)))
    yield ESTIMATE


def _alone(told: Forecast, price: float | None) -> Iterator[str]:
    """What it takes on this machine."""
    for stage in told.stages:
        source = ", at the pace of the run it is likened to" if stage.measured else ""
        yield f"{stage.name:<16}{_time(stage.seconds)}{source}"
    yield f"{'In all':<16}{_time(told.seconds)}"
    if price is not None:
        cost, hour = told.cost(price), "a GPU-hour" if told.machine.gpus else "an hour of this machine"
        yield f"{'Cost':<16}{'not known' if cost is None else f'{money(cost)} at {price:g} for {hour}'}"


def _notes(told: Forecast) -> Iterator[str]:
    for part in (line.part for line in told.lines if line.part.least != line.part.most):
        yield f"{part.name} is asked {part.least:,.0f} to {part.most:,.0f} times, by the paths that its walks take."
    for fault in (line.part for line in told.lines if line.part.overflow):
        yield f"Warning: {fault.place.role} {fault.name}: {fault.overflow}"
    if told.untimed:
        yield f"Not counted, since their hosts are not known: the time of {', '.join(told.untimed)}."
    if told.seconds is None and not told.housing.problem:
        yield "No time can be told: this machine's speed is not known; name a GPU with --gpu, or a run with --like."


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "not known"
    if seconds < 90:
        return f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 360_000 else f"{seconds / 86_400:,.0f} days"


def _as_json(told: Forecast, price: float | None) -> dict[str, Any]:
    arrangement = told.housing.arrangement
    return {
        "bundle": told.plan.bundle.name,
        "conversations": told.plan.count,
        "turns": told.plan.turns,
        "machine": asdict(told.machine),
        "roles": [_role_facts(line) for line in told.lines],
        "engines": [
            {
                "name": engine.name,
                "weights_bytes": engine.weights_bytes,
                "replicas": len(engine.places),
                "gpus": sorted(engine.gpus),
                "kv_tokens": engine.kv_tokens,
            }
            for engine in told.housing.engines.values()
        ],
        "residency": None if arrangement is None else arrangement.residency.value,
        "reason": told.housing.problem if arrangement is None else arrangement.reason,
        "stages": {stage.name: {"seconds": stage.seconds, "measured": stage.measured} for stage in told.stages},
        "seconds": told.seconds,
        "gpus_used": told.gpus,
        "gpu_hour_price": price,
        "cost": None if price is None else told.cost(price),
        "untimed": told.untimed,
        "assumptions": told.assumptions,
        "estimate": ESTIMATE,
    }


def _role_facts(line: Line) -> dict[str, Any]:
    part = line.part
    return {
        **part.place._asdict(),
        "name": part.name,
        "conversations": part.conversations,
        "requests": part.work.requests,
        "requests_least": part.least,
        "requests_most": part.most,
        "prompt_tokens": part.work.prompt,
        "computed_tokens": part.work.computed,
        "cached_tokens": part.work.cached,
        "output_tokens": part.work.output,
        "kv_tokens_of_a_conversation": part.held,
        "at_once": line.at_once,
        "seconds": line.seconds,
        "overflow": part.overflow or None,
    }
