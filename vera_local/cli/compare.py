"""`vera-local pool` and `vera-local compare`: runs together and side by side. Thin, as all commands."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from vera_local.cli.console import HarmlessConsole
from vera_local.cli.options import By, Csv, Json, Markdown, Parquet
from vera_local.errors import UserError
from vera_local.report import by_group, by_value, failure_modes, interval_table, matrix, scores_markdown, write_file
from vera_local.report.comparison import change_table, confusion_table, differences, letters, side_by_side
from vera_local.report.comparison_files import changed_frame, changes_markdown, compared_frame, comparison_markdown
from vera_local.report.files import write_frame
from vera_local.report.html.comparing import ComparisonPage, Part, part
from vera_local.report.html.render import comparison_html
from vera_local.report.markdown import bullets
from vera_local.run.comparing import JudgesCompared, PairOfJudges, RunsCompared, compare_judges, compare_runs
from vera_local.run.evaluate import bundle_of_run, must_hold_run
from vera_local.run.grouping import groupings
from vera_local.run.manifest import check_bundle
from vera_local.run.pooling import Pooled, pool_runs
from vera_local.score import Scores
from vera_local.score.compare import Comparison

app = typer.Typer()

Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs; compare takes pools, too.")]
Out = Annotated[Path, typer.Option(help="Folder to make for the pool.")]
Force = Annotated[bool, typer.Option("--force", help="Pass over differences that forbid it; they are recorded.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write a page for a browser.")]
Judges = Annotated[
    list[str] | None,
    typer.Option(
        "--judge", metavar="NAME", help="Only this judge; repeatable. Of one run: the first is the reference."
    ),
]


@app.command()
def pool(
    runs: Runs, out: Out, by: By = None, force: Force = False, markdown: Markdown = None, as_json: Json = False
) -> None:
    """Score runs of one chatbot with different simulators together."""
    bundle = bundle_of_run(runs[0])
    check_bundle(runs[0], must_hold_run(runs[0]), bundle)
    pooled = pool_runs(runs, out, bundle, groupings(bundle, by or ()), force=force)
    notes = [f"Instrument: {bundle.title} {bundle.version} ({bundle.name}). {bundle.notice}", *_told(pooled)]
    if markdown is not None:
        write_file(markdown, scores_markdown(pooled.scores, bundle.group_column, notes).encode())
    if as_json:
        print(json.dumps(_pooled(pooled)))
        return
    for judge, scores in pooled.scores.items():
        _show_scores(judge, scores, bundle.group_column, {q.id: q.text for q in bundle.rubric.questions})
    _say(_told(pooled))


@app.command()
def compare(
    runs: Runs,
    judges: Judges = None,
    force: Force = False,
    table: Csv = None,
    parquet: Parquet = None,
    markdown: Markdown = None,
    html: Html = None,
    as_json: Json = False,
) -> None:
    """Set chatbots side by side, or the judges of one run, and say what cannot be told apart."""
    if len(runs) == 1:
        if force:
            raise UserError("--force is for runs that differ; the judges of one run rated the same conversations")
        between = compare_judges(runs[0], judges or ())
        changed = {(pair.first, pair.second): pair.changes for pair in between.pairs}
        write_frame(changed_frame(changed), table, parquet)
        _write_page(html, _judges_page(between))
        _show_judges(between, markdown, as_json=as_json)
        return
    compared = compare_runs(runs, judges or (), force=force)
    write_frame(compared_frame(_comparisons(compared)), table, parquet)
    _write_page(html, runs_page(compared))
    show_runs(compared, markdown, as_json=as_json)


def _write_page(file: Path | None, page: ComparisonPage) -> None:
    if file is not None:
        write_file(file, comparison_html(page).encode())


def runs_page(compared: RunsCompared) -> ComparisonPage:
    """Runs side by side as a page."""
    told = {side: f"chatbot {compared.chatbots[side]}" for side in compared.folders}
    parts = tuple(
        part(f"part-{place}", f"Rated by {one.judge}", one.comparison, told, ("judges", one.judge))
        for place, one in enumerate(compared.judges)
    )
    notes = (*(f"Passed over: {difference}." for difference in compared.forced), *compared.notes)
    return ComparisonPage(" and ".join(compared.folders), f"Chatbots compared, {compared.bundle}", parts, notes)


def _judges_page(compared: JudgesCompared) -> ComparisonPage:
    parts = tuple(_pair(place, pair) for place, pair in enumerate(compared.pairs))
    return ComparisonPage(compared.folder.resolve().name, f"Judges compared, {compared.bundle}", parts, compared.notes)


def _pair(place: int, pair: PairOfJudges) -> Part:
    at = ("pairs", str(place))
    changes = ((*at, "changes"), pair.changes)
    title = f"{pair.second} against {pair.first}"
    return part(f"part-{place}", title, pair.comparison, {}, (*at, "comparison"), changes)


def _comparisons(compared: RunsCompared) -> dict[str, Comparison]:
    return {one.judge: one.comparison for one in compared.judges}


def _pooled(pooled: Pooled) -> dict[str, Any]:
    return {
        "folder": str(pooled.folder),
        "sources": list(pooled.sources),
        "forced": list(pooled.forced),
        "notes": list(pooled.notes),
        "judges": {judge: scores.model_dump(mode="json") for judge, scores in pooled.scores.items()},
    }


def _told(pooled: Pooled) -> list[str]:
    sources = [
        f"{s['label']} (simulator {s['simulator'] or 'none'}, {s['conversations']} conversations)"
        for s in pooled.sources
    ]
    return [
        f"Pooled: {'; '.join(sources)}.",
        *pooled.notes,
        *(f"Passed over: {difference}." for difference in pooled.forced),
        f"Results: {pooled.folder} (scores.json, scores.csv, results.csv, questions.csv, each .csv also as .parquet).",
    ]


def _show_scores(judge: str, scores: Scores, group_column: str, words: dict[str, str]) -> None:
    _show(f"Ratings by {judge}", matrix(scores), interval_table(scores))
    _show(f"By {group_column}", by_group(scores))
    for column, groups in scores.by.items():
        _show(f"By {column}", by_value(groups, scores.scale))
    _show(f"What decided the ratings by {judge}", failure_modes(scores, words))


def show_runs(compared: RunsCompared, markdown: Path | None = None, *, as_json: bool = False) -> None:
    """Print runs side by side; with `markdown` also into that file."""
    comparisons = _comparisons(compared)
    if markdown is not None:
        lines = [line for judge, one in comparisons.items() for line in comparison_markdown(judge, one)]
        write_file(markdown, "\n".join([*lines, *bullets(_about(compared)), ""]).encode())
    if as_json:
        print(json.dumps(runs_told(compared)))
        return
    for judge, one in comparisons.items():
        _show(f"Rated by {judge}", side_by_side(one))
        _show("Differences", differences(one))
    _say(_about(compared))


def _about(compared: RunsCompared) -> list[str]:
    short = letters(list(compared.folders))
    sides = [f"{short[s]}: {s}, chatbot {compared.chatbots[s]} ({folder})" for s, folder in compared.folders.items()]
    passed = [f"Passed over: {difference}." for difference in compared.forced]
    return [*sides, f"Bundle: {compared.bundle}.", *passed, *compared.notes]


def runs_told(compared: RunsCompared) -> dict[str, Any]:
    """Runs side by side as JSON has them."""
    return {
        "bundle": compared.bundle,
        "sides": {s: {"folder": str(f), "chatbot": compared.chatbots[s]} for s, f in compared.folders.items()},
        "forced": list(compared.forced),
        "notes": list(compared.notes),
        "judges": {one.judge: one.comparison.model_dump(mode="json") for one in compared.judges},
    }


def _show_judges(compared: JudgesCompared, markdown: Path | None, *, as_json: bool) -> None:
    if markdown is not None:
        write_file(markdown, "\n".join(_judges_markdown(compared)).encode())
    if as_json:
        print(json.dumps(_judges(compared)))
        return
    for pair in compared.pairs:
        _show(f"{pair.second} against {pair.first}", change_table(pair.changes))
        _show("All ratings", confusion_table(pair.changes.overall, pair.first, pair.second))
        _show("Their scores", side_by_side(pair.comparison))
        _show("Differences", differences(pair.comparison))
        short = letters([pair.first, pair.second])
        _say([f"{letter}: {judge}" for judge, letter in short.items()])
        _say([f"Conversations that both rated: {pair.changes.conversations}."])
    _say([f"Bundle: {compared.bundle}. Run: {compared.folder}.", *compared.notes])


def _judges_markdown(compared: JudgesCompared) -> list[str]:
    return [
        *(line for pair in compared.pairs for line in changes_markdown(pair.first, pair.second, pair.changes)),
        *(
            line
            for pair in compared.pairs
            for line in comparison_markdown(f"{pair.first} and {pair.second}", pair.comparison)
        ),
        *bullets([f"Bundle: {compared.bundle}. Run: {compared.folder}.", *compared.notes]),
        "",
    ]


def _judges(compared: JudgesCompared) -> dict[str, Any]:
    pairs = [
        {
            "first": pair.first,
            "second": pair.second,
            "changes": pair.changes.model_dump(mode="json"),
            "comparison": pair.comparison.model_dump(mode="json"),
        }
        for pair in compared.pairs
    ]
    about = {"bundle": compared.bundle, "folder": str(compared.folder), "notes": list(compared.notes)}
    return about | {"pairs": pairs}


def _show(title: str, *shown: RenderableType) -> None:
    console = HarmlessConsole()
    console.print(f"\n{title}", style="bold", highlight=False, markup=False)
    for one in shown:
        console.print(one)
        console.print()


def _say(lines: Iterable[str]) -> None:
    console = HarmlessConsole()
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
