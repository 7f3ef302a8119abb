"""`vera-local personas`: look at a bundle's personas. Thin: what is right or wrong, the bundle's own checks say."""

from __future__ import annotations

import typer

from vera_local.bundle import examine
from vera_local.bundle.problem import raise_first
from vera_local.cli.options import Target
from vera_local.cli.rubric import Bundle, Json, report

app = typer.Typer(help="Check or show a bundle's personas.", no_args_is_help=True)


@app.command()
def check(bundle: Bundle, target: Target = None, as_json: Json = False) -> None:
    """Say everything that is wrong with a bundle; exit code 2 where something is."""
    examined = examine(bundle, target)
    groups = [p.group for p in examined.personas]
    counts = {"personas": len(groups), "groups": {group: groups.count(group) for group in dict.fromkeys(groups)}}
    report(counts, examined, as_json=as_json)


@app.command()
def show(bundle: Bundle, target: Target = None) -> None:
    """Print every persona with all that is said of it."""
    examined = examine(bundle, target)
    raise_first(p.sentence for p in examined.findings.problems)
    for persona in examined.personas:
        print(f"\n{persona.name} ({persona.group})")
        for column, text in persona.fields.items():
            print(f"  {column}: {text}")
