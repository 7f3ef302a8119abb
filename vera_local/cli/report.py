"""`vera-local report`: a run as a page, a summary and figures. Thin, as all commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from vera_local.cli.options import By, Price, Run
from vera_local.cli.show import progress_console, warn
from vera_local.cli.stats import Gpus
from vera_local.errors import UserError
from vera_local.report import write_file
from vera_local.report.cost import cost_lines
from vera_local.report.html.page import EXCERPTS, Choice, page
from vera_local.report.html.render import report_html
from vera_local.report.record import Record
from vera_local.report.summary import summary_markdown
from vera_local.run.evaluate import bundle_of_run
from vera_local.run.reported import record_of
from vera_local.run.stats import cost_of

app = typer.Typer()

NAME = "report.html"

Out = Annotated[Path | None, typer.Option(help="The page to write; report.html in the run's folder if left out.")]
Redact = Annotated[
    bool, typer.Option("--redact", help="Leave out all that was said: transcripts, excerpts, judges' reasons.")
]
Excerpts = Annotated[
    str, typer.Option(metavar="none|N", help="How many excerpts to show for each failure mode at most.")
]
Figures = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Also draw figures for a paper there, as SVG and PNG.")
]
Summary = Annotated[
    Path | None,
    typer.Option("--markdown", metavar="FILE", help="Also write a summary for a pull request."),
]


@app.command()
def report(
    folder: Run,
    out: Out = None,
    redact: Redact = False,
    excerpts: Excerpts = str(EXCERPTS),
    by: By = None,
    gpu_hour_price: Price = None,
    gpus: Gpus = None,
    figures: Figures = None,
    markdown: Summary = None,
) -> None:
    """Write a run as one self-contained page, for a browser: ratings, failure modes, transcripts, provenance."""
    if gpus is not None and gpu_hour_price is None:
        raise UserError("--gpus is how many GPUs to pay, so it goes with --gpu-hour-price; name the price, too")
    bundle = bundle_of_run(folder)
    warn(bundle, progress_console())
    choice = Choice(redact=redact, excerpts=_excerpts(excerpts))
    record = record_of(folder, bundle, by or ())
    if gpu_hour_price is not None:
        record = replace(record, cost=tuple(cost_lines(cost_of(record.work, gpu_hour_price, gpus))))
    file = out or folder / NAME
    write_file(file, report_html(page(record, choice)).encode())
    if markdown is not None:
        write_file(markdown, summary_markdown(record).encode())
    if figures is not None:
        _draw(figures, record)
    print(f"{file}: {'no transcript in it' if redact else 'it holds whole transcripts; keep it as you keep the run'}.")


def _draw(folder: Path, record: Record) -> None:
    # The libraries that draw take a second to load, which only those who want figures wait for.
    from vera_local.report.figures import figures, write_figures

    write_figures(folder, figures(record))


def _excerpts(words: str) -> int:
    if words == "none":
        return 0
    if not (words.isascii() and words.isdigit()):
        raise UserError(f"--excerpts {words}: write none, or how many for each failure mode, such as {EXCERPTS}")
    return int(words)
