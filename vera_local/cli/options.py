"""Options that several commands have. Knows no command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Bundle = Annotated[str | None, typer.Option(help="The clinical instrument: a name or a folder.")]
JudgeMode = Annotated[
    str | None,
    typer.Option(metavar="direct|reason|think", help="Answer at once, after some sentences, or after own thinking."),
]
Target = Annotated[str | None, typer.Option(metavar="NAME", help="Which instrument of an official VERA-MH checkout.")]
EndSemantics = Annotated[
    str | None,
    typer.Option(metavar="fixed|legacy", help="Official bundles: whether END keeps the findings of a finished rubric."),
]
Engine = Annotated[
    str | None,
    typer.Option(metavar="vllm|transformers", help="What hosts models on this machine; vllm unless told otherwise."),
]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
By = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Score by this persona column, too; repeatable.")]
Csv = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Also write every number to this file.")]
Parquet = Annotated[Path | None, typer.Option("--parquet", metavar="FILE", help="The same as a parquet file.")]
Markdown = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write tables for a paper to this file.")]
