"""The commands that bring conversations in and take them out. Thin, as all commands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from vera_local.cli.options import EndSemantics, Run, Target
from vera_local.cli.show import progress_console
from vera_local.run import Outcome, load_config, make_plan
from vera_local.run.evaluate import bundle_of_run
from vera_local.run.exporting import Exported, Layout, export_run
from vera_local.run.importing import import_run, unknown_personas
from vera_local.run.recordings import find

app = typer.Typer()

Source = Annotated[Path, typer.Argument(metavar="PATH", help="A folder of .txt files, or a .txt, .jsonl or .csv file.")]
Out = Annotated[Path, typer.Option(help="Run folder to make.")]
Bundle = Annotated[str | None, typer.Option(help="The clinical instrument to judge by: a name or a folder.")]
Judge = Annotated[
    list[str] | None,
    typer.Option(metavar="MODEL", help="A judge that `vera-local judge` is to use; may be given several times."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of sentences.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write to.")]
To = Annotated[Layout, typer.Option(help="vera-mh: its conversation, evaluation and score files. jsonl: transcripts.")]


@app.command("import")
def import_(
    path: Source,
    out: Out,
    bundle: Bundle = None,
    target: Target = None,
    end_semantics: EndSemantics = None,
    judge: Judge = None,
    as_json: Json = False,
) -> None:
    """Make a run of conversations that were held elsewhere, for `vera-local judge` to rate."""
    flags = {"out": out, "bundle": bundle, "target": target, "end_semantics": end_semantics, "judge": judge or None}
    plan, found = make_plan(load_config(None, flags)), find(path)
    outcome = import_run(plan, found)
    console = progress_console()
    for note in found.notes:
        console.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
    print(json.dumps(_facts(outcome, found.notes)) if as_json else "\n".join(_sentences(outcome, judge)))


@app.command()
def export(folder: Run, target: Folder, to: To, as_json: Json = False) -> None:
    """Write the conversations and ratings of a run as files for other programs."""
    exported = export_run(folder, bundle_of_run(folder), to, target)
    print(json.dumps(_exported(exported)) if as_json else "\n".join(_told(exported, target)))


def _facts(outcome: Outcome, notes: tuple[str, ...]) -> dict[str, object]:
    lengths = [head.turns for head in outcome.conversations]
    return {
        "conversations": len(lengths),
        "messages": sum(lengths),
        "judgeable": sum(c.judgeable for c in outcome.conversations),
        "unknown_personas": dict(unknown_personas(outcome)),
        "notes": list(notes),
    }


def _sentences(outcome: Outcome, judge: Sequence[str] | None) -> list[str]:
    lengths, unknown = [head.turns for head in outcome.conversations], unknown_personas(outcome)
    span = " to ".join(str(n) for n in dict.fromkeys((min(lengths), max(lengths))))
    unfit = sum(not c.judgeable for c in outcome.conversations)
    names = ", ".join(sorted(name or "(no name)" for name in unknown))
    return [
        f"{len(lengths)} conversations are in {outcome.folder}; messages in each: {span}.",
        *([f"Personas that the bundle does not know, in {unknown.total()} of them: {names}."] if unknown else []),
        *([f"Not fit to judge, for want of a chatbot's message or an end: {unfit}."] if unfit else []),
        f"Next: vera-local judge {outcome.folder}" + ("" if judge else " --judge MODEL"),
    ]


def _exported(exported: Exported) -> dict[str, object]:
    return {
        "conversations": exported.conversations,
        "judges": list(exported.judges),
        "not_carried_by_txt": exported.not_carried,
    }


def _told(exported: Exported, target: Path) -> list[str]:
    judges = f" (rated by {', '.join(exported.judges)})" if exported.judges else ""
    lost = exported.not_carried
    return [
        f"{exported.conversations} conversations{judges} are in {target}; conversations.jsonl holds every text.",
        *([f".txt does not carry {len(lost)} of them:"] if lost else []),
        *(f"  {id}: {reason}" for id, reason in lost.items()),
    ]
