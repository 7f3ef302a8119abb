"""Options that several commands have. Knows no command."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from vera_local.engine.plain_data import confirm_code
from vera_local.engine.profile import find_profile
from vera_local.errors import UserError


def confirm(models: list[str] | None) -> None:
    """Note whose code a person wants to be run; UserError for a model whose profile does not ask for it."""
    for model in models or ():
        profile = find_profile(model)
        if not profile.engine.trust_remote_code:
            raise UserError(
                f"--trust-remote-code {model}: its profile does not ask to run code, so none is run; leave the flag out"
            )
        confirm_code(profile)


def _amount(price: float | None) -> float | None:
    """The price, where it is one."""
    if price is not None and not math.isfinite(price):
        raise UserError(f"--gpu-hour-price {price}: must be an amount of money")
    return price


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
Code = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-remote-code",
        metavar="NAME",
        callback=confirm,
        expose_value=False,
        help="Run the Python code in the folder of this model, whose profile asks for it; repeatable.",
    ),
]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
By = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Score by this persona column, too; repeatable.")]
Csv = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Also write every number to this file.")]
Parquet = Annotated[Path | None, typer.Option("--parquet", metavar="FILE", help="The same as a parquet file.")]
Markdown = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write tables for a paper to this file.")]
Price = Annotated[
    float | None,
    typer.Option("--gpu-hour-price", metavar="PRICE", min=0, callback=_amount, help="What one GPU costs for an hour."),
]
Gpu = Annotated[
    str | None, typer.Option(metavar="NAME", help="A GPU such as H200; this machine's unless told otherwise.")
]
Gpus = Annotated[int | None, typer.Option(metavar="N", min=1, help="How many of them.")]
Conversations = Annotated[
    int | None,
    typer.Option(metavar="M", min=1, help="So many conversations at least, spread over workers that share the GPUs."),
]
Like = Annotated[
    Path | None,
    typer.Option(metavar="RUN", help="Take lengths, answers and pace from this run."),
]


def with_options_of(other: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command all options of `other` beside its own; they come to it as keywords."""

    def give(command: Callable[..., None]) -> Callable[..., None]:
        own, theirs = _parameters(command), _parameters(other)
        shared = [parameter for name, parameter in theirs.items() if name not in own]
        parameters = [*shared, *own.values()]
        # What typer reads of a function.
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return give


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    named = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    return {p.name: p.replace(annotation=hints[p.name], kind=p.KEYWORD_ONLY) for p in named}
