"""The command that shows conversations and what judges said of them. Thin, as all commands."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from vera_local.cli.options import Run
from vera_local.run.evaluate import bundle_of_run
from vera_local.run.reading import read_run

app = typer.Typer()

Conversation = Annotated[str | None, typer.Argument(help="The conversation to read; without it all are listed.")]
Judge = Annotated[str | None, typer.Option(metavar="NAME", help="One judge, by its name in the run, or the jury.")]


@app.command()
def show(folder: Run, conversation: Conversation = None, judge: Judge = None) -> None:
    """List a run's conversations with their ratings, or read one with each judge's answers and grounds."""
    text = read_run(folder, bundle_of_run(folder), conversation, judge)
    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal that cannot show a character gets its number instead of nothing at all.
        sys.stdout.reconfigure(errors="backslashreplace")
    print(text)
