"""The command that tries a judge on transcripts with known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vera_local.cli.console import HarmlessConsole
from vera_local.cli.interrupt import run_until_interrupted
from vera_local.cli.options import Bundle, Code, EndSemantics, Engine, JudgeMode, Target
from vera_local.cli.show import progress_console, warn
from vera_local.run import Watcher, load_config, make_plan, opener
from vera_local.run.selftesting import selftest as try_judge
from vera_local.run.selftesting import selftest_folder
from vera_local.selftest import Card, summary_of

app = typer.Typer()

Judge = Annotated[str | None, typer.Option(metavar="MODEL", help="The judge to try; without it the embedded model.")]
Repeats = Annotated[
    str | None,
    typer.Option(metavar="N", help="How often each question is asked; 3, or 2 where nothing is drawn at random."),
]
Out = Annotated[Path | None, typer.Option(help="Folder for the judge card, card.json and card.md.")]
Json = Annotated[bool, typer.Option("--json", help="Print the card as one JSON object.")]


@app.command()
def selftest(
    judge: Judge = None,
    bundle: Bundle = None,
    target: Target = None,
    end_semantics: EndSemantics = None,
    engine: Engine = None,
    judge_mode: JudgeMode = None,
    repeats: Repeats = None,
    out: Out = None,
    code: Code = None,
    as_json: Json = False,
) -> None:
    """Try a judge on short transcripts with known answers, and keep what it is worth as a judge card."""
    flags = {"bundle": bundle, "target": target, "end_semantics": end_semantics, "engine": engine}
    asked = {"judge": judge, "judge_mode": judge_mode, "repeats": repeats}
    plan = make_plan(load_config(None, flags | asked))
    times = None if repeats is None else plan.config.repeats
    folder, console = out or selftest_folder(plan), progress_console()
    warn(plan.bundle, console)
    work = try_judge(plan, folder, times, opener, Watcher(console))
    card = run_until_interrupted(work, "Stopped. A self-test is made in one go, so nothing is kept.")
    _show(card, folder, as_json=as_json)


def _show(card: Card, folder: Path, *, as_json: bool) -> None:
    if as_json:
        print(card.model_dump_json())
        return
    console = HarmlessConsole()
    for line in (*summary_of(card), f"Judge card: {folder} (card.md, card.json)."):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
