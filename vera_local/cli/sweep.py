"""`vera-local sweep`: many runs as one queue, compared in the end. Thin, as all commands."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from vera_local.cli.compare import runs_page, runs_told, show_runs
from vera_local.cli.console import HarmlessConsole
from vera_local.cli.interrupt import run_until_interrupted
from vera_local.cli.options import Code, Json
from vera_local.cli.show import judge_notes, progress_console, warn
from vera_local.engine.seam import EngineError
from vera_local.report import write_file
from vera_local.report.html.render import comparison_html
from vera_local.report.layout import plain_table
from vera_local.report.record import DEMONSTRATION
from vera_local.run import Watcher, opener
from vera_local.run.folder import ENGINE_LOG
from vera_local.run.network import network_line
from vera_local.run.sweep_compared import Comparison, compare_points
from vera_local.run.sweep_file import Asked, read_sweep
from vera_local.run.sweep_folder import comparison_files
from vera_local.run.sweep_plan import Outlook, outlook
from vera_local.run.sweeping import Swept
from vera_local.run.sweeping import sweep as run_sweep

app = typer.Typer()


File = Annotated[Path, typer.Argument(metavar="SWEEP.toml", help="The keys of a config, and axes (docs/scaling.md).")]
Before = Annotated[
    bool, typer.Option("--plan", "--dry-run", help="Say which runs are left and which models are loaded; start none.")
]


@app.command()
def sweep(file: File, plan: Before = False, code: Code = None, as_json: Json = False) -> None:
    """Run each chatbot with each simulator, bundle and seed, let each judge rate it, and compare. Goes on as `run`."""
    asked = read_sweep(file)
    if plan:
        _show_outlook(asked, outlook(asked), as_json=as_json)
        return
    console = progress_console()
    _announce(asked, console)
    farewell = f"Stopped. What was finished is kept in {asked.out}; the same command goes on from there."
    swept = run_until_interrupted(run_sweep(asked, opener(asked.out / ENGINE_LOG), Watcher(console)), farewell)
    compared = compare_points(asked, swept.done)
    _write(asked.out, compared)
    _show(asked, swept, compared, as_json=as_json)
    if swept.failed:
        name, reason = next(iter(swept.failed.items()))
        raise EngineError(f"{len(swept.failed)} of {len(asked.points)} runs failed, the first of them {name}: {reason}")


def _announce(asked: Asked, console: Console) -> None:
    plans = [point.plan for point in asked.points]
    for bundle in {plan.bundle.name: plan.bundle for plan in plans}.values():
        warn(bundle, console)
    if any(player.embedded for plan in plans for player in (*plan.speakers, *(seat.player for seat in plan.judges))):
        console.print(DEMONSTRATION, highlight=False)
    judges = ", ".join(seat.name for seat in plans[0].judges)
    conversations = sum(plan.count for plan in plans)
    lines = (
        f"Sweep: {len(plans)} runs with {conversations} conversations, judged by {judges}, in {asked.out}.",
        *judge_notes(plans[0]),
        f"Network: {network_line(*plans)}.",
    )
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _show_outlook(asked: Asked, told: Outlook, *, as_json: bool) -> None:
    rows = [
        (point.name, point.plan.count, "simulate, judge" if one.talks else "judge" if one else "nothing")
        for point, one in told.left
    ]
    loadings = [{"model": one.model, "times": one.times, "engines": one.engines} for one in told.loadings]
    if as_json:
        points = [{"name": name, "conversations": number, "left": left} for name, number, left in rows]
        about = {"out": str(asked.out), "points": points, "removed": list(told.removed)}
        print(json.dumps(about | {"models": loadings, "reason": told.reason}))
        return
    table = plain_table("Run", ["conversations"])
    table.add_column("left to do")
    for name, number, left in rows:
        table.add_row(Text(name), str(number), left)
    HarmlessConsole().print(table)
    by_left = Counter({left: sum(number for _, number, its in rows if its == left) for _, _, left in rows})
    _say(
        [
            "",
            f"Runs: {len(rows)}. Conversations: {sum(by_left.values())}, {by_left['simulate, judge']} of them in runs "
            "that are still to be held.",
            *(
                f"{one.model}: loaded {_times(one.times)}{f', in {one.engines} engines' if one.engines > 1 else ''}."
                for one in told.loadings
            ),
            *([told.reason] if told.reason else []),
            *(_removed(name, asked) for name in told.removed),
        ]
    )


def _write(out: Path, compared: list[Comparison]) -> None:
    for one in compared:
        page, facts = comparison_files(out, one.bundle)
        if one.compared is not None:
            write_file(page, comparison_html(runs_page(one.compared)).encode())
            told = json.dumps(runs_told(one.compared), indent=2, ensure_ascii=False)
            write_file(facts, f"{told}\n".encode())
        else:
            # Those of an earlier start compare what is not to be compared any more.
            page.unlink(missing_ok=True)
            facts.unlink(missing_ok=True)


def _show(asked: Asked, swept: Swept, compared: list[Comparison], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(_as_json(asked, swept, compared)))
        return
    for one in compared:
        if one.compared is not None:
            show_runs(one.compared)
    _say(
        [
            "",
            f"Runs: {len(swept.done)} of {len(asked.points)} done, in {asked.out}.",
            *(f"Failed: {name}: {reason}." for name, reason in swept.failed.items()),
            *(_removed(name, asked) for name in swept.removed),
            *(_page(asked, one) for one in compared),
        ]
    )


def _page(asked: Asked, one: Comparison) -> str:
    if one.compared is None:
        return f"No comparison on {one.bundle}: {one.why}."
    return f"Comparison on {one.bundle}: {comparison_files(asked.out, one.bundle)[0]} (and .json)."


def _as_json(asked: Asked, swept: Swept, compared: list[Comparison]) -> dict[str, Any]:
    return {
        "out": str(asked.out),
        "done": list(swept.done),
        "failed": swept.failed,
        "removed": list(swept.removed),
        "comparisons": {one.bundle: None if one.compared is None else runs_told(one.compared) for one in compared},
    }


def _removed(name: str, asked: Asked) -> str:
    return f"{name} is not in {asked.file} any more; its run stays in {asked.out / name}."


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _say(lines: list[str]) -> None:
    console = HarmlessConsole()
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
