"""`vera-local score`: a run's ratings as scores, with how sure they are. Thin, as all commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from vera_local.cli.console import HarmlessConsole
from vera_local.cli.options import By, Json, Markdown, Run
from vera_local.cli.show import progress_console, show_outcome, warn
from vera_local.report import by_value, failure_modes, intervals_by_group, scores_markdown, write_file
from vera_local.run import Outcome, score_run
from vera_local.run.evaluate import bundle_of_run
from vera_local.run.grouping import groupings
from vera_local.run.publishing import warned
from vera_local.score import Profile, Scores

app = typer.Typer()

Spans = Annotated[bool, typer.Option("--intervals", help="Show the intervals of every group, too.")]


@app.command()
def score(
    folder: Run, by: By = None, intervals: Spans = False, markdown: Markdown = None, as_json: Json = False
) -> None:
    """Score a run again from its store and write its result files."""
    bundle = bundle_of_run(folder)
    warn(bundle, progress_console())
    outcome = score_run(folder, bundle, groupings(bundle, by or ()))
    if markdown is not None:
        write_markdown(markdown, outcome)
    show_outcome(outcome, as_json=as_json)
    if not as_json:
        for judge, scores in outcome.scores.items():
            _show_more(judge, scores, outcome, intervals=intervals)


def write_markdown(file: Path, outcome: Outcome) -> None:
    """Write the tables for a paper."""
    bundle = outcome.bundle
    notes = [f"Instrument: {bundle.title} {bundle.version} ({bundle.name}). {bundle.notice}", f"Run: {outcome.folder}."]
    notes += warned(outcome)
    write_file(file, scores_markdown(outcome.scores, bundle.group_column, notes).encode())


def _show_more(judge: str, scores: Scores, outcome: Outcome, *, intervals: bool) -> None:
    console = HarmlessConsole()
    for column, groups in scores.by.items():
        console.print(f"\nRatings by {judge}, by {column}", style="bold", highlight=False)
        console.print(by_value(groups, scores.scale))
    if intervals:
        for column, groups in {outcome.bundle.group_column: scores.groups, **scores.by}.items():
            _show_intervals(column, groups, scores, console)
    console.print(f"\nWhat decided the ratings by {judge}", style="bold", highlight=False)
    console.print(failure_modes(scores, {q.id: q.text for q in outcome.bundle.rubric.questions}))


def _show_intervals(column: str, groups: dict[str, Profile], scores: Scores, console: Console) -> None:
    console.print(f"\nIntervals by {column}", style="bold", highlight=False)
    console.print(intervals_by_group(groups, scores.scale))
