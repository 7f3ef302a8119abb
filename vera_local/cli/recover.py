"""The command that saves what can be read of a damaged run. Thin, as all commands."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from vera_local.cli.options import Run
from vera_local.report.reading import harmless
from vera_local.run.recovering import Recovered, recover_run

app = typer.Typer()


@app.command()
def recover(folder: Run) -> None:
    """Save what can be read of a run's damaged store into a new one; the damaged one is kept."""
    for sentence in _told(recover_run(folder)):
        print(harmless(sentence))


def _told(recovered: Recovered) -> Iterator[str]:
    if recovered.kept_at is None:
        yield "The store is whole; nothing was changed."
        return
    yield f"The damaged store is kept as {recovered.kept_at}; the new one is whole."
    yield "Rows in it: " + ", ".join(f"{table} {count}" for table, count in recovered.rows) + "."
    if recovered.damaged or not recovered.dropped:
        yield f"Not all could be read of: {', '.join(recovered.damaged) or 'nothing, all rows were there'}."
    if recovered.dropped:
        yield f"Of its log {recovered.dropped} commits or more could not be read; what is missing is asked for again."
    if recovered.anew:
        names = ", ".join(recovered.anew)
        yield f"Removed, since messages of theirs are or may be lost ({len(recovered.anew)}): {names}."
    if recovered.rerated:
        yield "Ratings are worked out again from the verdicts, and verdicts that were lost are asked for again."
    yield "The command that made the run goes on from there (`import` for conversations that were imported)."
