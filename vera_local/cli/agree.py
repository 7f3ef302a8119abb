"""The command that compares raters. Thin, as all commands."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Annotated

import typer

from vera_local.cli.console import HarmlessConsole
from vera_local.cli.options import Csv, Json, Markdown, Parquet
from vera_local.errors import UserError
from vera_local.report.agreement import agreement_frame, agreement_json, agreement_markdown
from vera_local.report.agreement_terminal import agreement_blocks
from vera_local.report.files import write_file, write_frame
from vera_local.run.agreeing import Agreed, Asked
from vera_local.run.agreeing import agree as compare
from vera_local.run.labels_file import Cleaning, Layout
from vera_local.score.estimate import Sampling

app = typer.Typer()

Sources = Annotated[
    list[Path] | None, typer.Argument(metavar="[RUN|FILE]...", help="Run folders, or a CSV of ratings.")
]
LabelsFile = Annotated[Path | None, typer.Option("--labels", help="CSV of people's ratings, beside runs or alone.")]
Item = Annotated[list[str] | None, typer.Option(metavar="COLUMN,...", help="Columns that name what was rated.")]
Rater = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of the rater; without: ratings columns are raters.")
]
Ratings = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN,...", help="Columns with ratings, one per dimension.")
]
Dimension = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of the dimension, where each row is one rating.")
]
Chatbot = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of the chatbot, for the baseline that knows it.")
]
Cluster = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN,...", help="Columns of what is drawn as a whole (the item).")
]
ScaleWords = Annotated[
    list[str] | None, typer.Option("--scale", metavar="WORD,...", help="The ratings in their order.")
]
OffScale = Annotated[
    list[str] | None,
    typer.Option(metavar="WORD,...", help="Ratings with no place in the order: missing to ordinal statistics."),
]
Missing = Annotated[
    list[str] | None, typer.Option(metavar="WORD,...", help="Words that mean no rating, as an empty cell does.")
]
Map = Annotated[list[str] | None, typer.Option("--map", metavar="OLD=NEW", help="Call a dimension by another name.")]
MapRating = Annotated[list[str] | None, typer.Option(metavar="OLD=NEW", help="Call a rating by another word.")]
Without = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN=VALUE,...", help="Leave out ratings where all of these hold.")
]
Raters = Annotated[
    list[str] | None, typer.Option(metavar="NAME,...", help="The raters to compare; * stands for any text.")
]
Reference = Annotated[str | None, typer.Option(metavar="RATER|majority", help="Who is right by definition.")]
MajorityOf = Annotated[list[str] | None, typer.Option(metavar="NAME,...", help="Whose majority the reference is.")]
Draws = Annotated[int, typer.Option(min=100, help="Draws of the bootstrap.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")]
Level = Annotated[float, typer.Option(min=0.5, max=0.999, help="Confidence of the intervals.")]


@app.command()
def agree(
    sources: Sources = None,
    labels: LabelsFile = None,
    item: Item = None,
    rater: Rater = None,
    ratings: Ratings = None,
    dimension: Dimension = None,
    chatbot: Chatbot = None,
    cluster: Cluster = None,
    scale: ScaleWords = None,
    off_scale: OffScale = None,
    missing: Missing = None,
    names: Map = None,
    map_rating: MapRating = None,
    without: Without = None,
    raters: Raters = None,
    reference: Reference = None,
    majority_of: MajorityOf = None,
    draws: Draws = 2000,
    seed: Seed = 0,
    level: Level = 0.95,
    as_json: Json = False,
    table: Csv = None,
    parquet: Parquet = None,
    markdown: Markdown = None,
) -> None:
    """How far raters agree: people in a table, judges of runs, or both; with intervals and trivial baselines."""
    file, runs = _sources(sources or [], labels)
    asked = Asked(
        labels=file,
        runs=runs,
        layout=Layout(_words(item), _words(ratings), rater, dimension, chatbot, _words(cluster)),
        cleaning=Cleaning(
            frozenset(_words(missing)),
            _pairs(names, "--map"),
            _pairs(map_rating, "--map-rating"),
            tuple(_pairs(_words([one]), "--without") for one in without or []),
        ),
        scale=_words(scale),
        off_scale=_words(off_scale),
        raters=_words(raters),
        reference=reference,
        majority_of=_words(majority_of),
        sampling=Sampling(draws, seed, level),
    )
    agreed = compare(asked)
    _write(agreed, table, parquet, markdown)
    _show(agreed, as_json=as_json)


def _sources(paths: list[Path], labels: Path | None) -> tuple[Path | None, tuple[Path, ...]]:
    files = [path for path in paths if not path.is_dir()]
    named = [*files, *([] if labels is None else [labels])]
    if len(named) > 1:
        raise UserError(f"{named[0]} and {named[1]} are no run folders, and one table of ratings is read; join them")
    return (named[0] if named else None), tuple(path for path in paths if path.is_dir())


def _words(values: list[str] | None) -> tuple[str, ...]:
    """The words of all values, with commas between them; quotes hold a word with a comma together."""
    rows = csv.reader(io.StringIO("\n".join(values or [])), skipinitialspace=True)
    return tuple(word.strip() for row in rows for word in row)


def _pairs(values: list[str] | tuple[str, ...] | None, option: str) -> dict[str, str]:
    pairs = [value.partition("=") for value in values or []]
    for old, sign, new in pairs:
        if not (old and sign and new):
            raise UserError(f"{option} {old}{sign}{new}: write it as OLD=NEW, without spaces around the sign")
    return {old: new for old, _, new in pairs}


def _write(agreed: Agreed, table: Path | None, parquet: Path | None, markdown: Path | None) -> None:
    write_frame(agreement_frame(agreed.report, agreed.labels.words.all), table, parquet)
    if markdown is not None:
        text = agreement_markdown(agreed.labels, agreed.sampling, agreed.report, agreed.notes)
        write_file(markdown, text.encode())


def _show(agreed: Agreed, *, as_json: bool) -> None:
    parts = agreed.labels, agreed.question, agreed.sampling, agreed.report, agreed.notes
    if as_json:
        print(json.dumps(agreement_json(*parts), ensure_ascii=False, allow_nan=False))
        return
    console = HarmlessConsole()
    for block in agreement_blocks(*parts):
        console.print(block, highlight=False)
