"""The command that removes what was said in a run. Thin, as all commands."""

from __future__ import annotations

from typing import Annotated

import typer

from vera_local.cli.options import Run
from vera_local.report.reading import harmless
from vera_local.run.purging import purge_run

app = typer.Typer()

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask first.")]


@app.command()
def purge(folder: Run, yes: Yes = False) -> None:
    """Remove transcripts and judges' reasons from a run for good; ratings, answers, scores and counts stay."""
    if not yes:
        typer.confirm(f"Remove for good all that was said in {folder}?", abort=True, err=True)
    purged = purge_run(folder)
    left = f"nothing that was said is left in it{', but perhaps in the files below' if purged.left else ''}"
    print(f"{folder}: {left}; ratings, answers, scores and counts are. Files removed: {len(purged.removed)}.")
    for file in purged.left:
        print(harmless(f"Not known as one of this program, so unchanged; see whether it quotes: {file}"))
