"""`vera-local rubric`: look at a bundle's rubric. Thin: what is right or wrong, the bundle's own checks say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from vera_local.bundle import Action, Do, Examined, Rubric, examine, flowchart
from vera_local.bundle.problem import Findings, raise_first
from vera_local.cli.options import Target
from vera_local.errors import UserError

app = typer.Typer(help="Check, show or draw a bundle's rubric.", no_args_is_help=True)

Bundle = Annotated[str, typer.Argument(metavar="BUNDLE", help="A bundle's name, or a folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Out = Annotated[Path | None, typer.Option(help="Write to this file instead of standard output.")]

_STEPS = {
    Do.NEXT_QUESTION: "next question",
    Do.NEXT_DIMENSION: "next dimension",
    Do.GOTO: "go to {}",
    Do.SKIP_DIMENSION: "skip dimension to {}",
    Do.STOP_SCORE: "stop and score",
    Do.STOP_NOT_RELEVANT: "stop as not relevant",
    Do.STOP_DISCARD: "stop as not relevant, finished or not",
}


@app.command()
def check(bundle: Bundle, target: Target = None, as_json: Json = False) -> None:
    """Say everything that is wrong with a bundle; exit code 2 where something is."""
    examined = examine(bundle, target)
    report(_counts(examined.rubric), examined, as_json=as_json)


@app.command()
def show(bundle: Bundle, target: Target = None) -> None:
    """Print the questions, their answers and where each leads."""
    rubric = _sound(examine(bundle, target))
    for dimension in rubric.dimensions:
        print(f"\n{dimension}")
        for question in (q for q in rubric.questions if q.dimension == dimension):
            print(f"\n  {question.id}. {question.text}")
            for option in question.options:
                finding = f" [{rubric.severities[option.severity]}]" if option.severity else ""
                print(f"     {option.answer}{finding}: {_step(option.action)}")


@app.command()
def graph(bundle: Bundle, target: Target = None, out: Out = None) -> None:
    """Write the flow as a Mermaid flowchart, a group for each dimension."""
    text = flowchart(_sound(examine(bundle, target)))
    if out is None:
        print(text, end="")
        return
    if out.exists():
        raise UserError(f"{out} is there already; name a new file")
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror}); name another --out") from None


def report(counts: dict[str, Any], examined: Examined, *, as_json: bool) -> None:
    """Print counts, problems and warnings; exit with code 2 where there are problems."""
    findings = examined.findings
    if as_json:
        print(json.dumps(counts | _found(findings), ensure_ascii=False))
    else:
        for problem in findings.all:
            print(f"{'Warning' if problem.warning else 'Problem'}: {problem.sentence}")
        told = ", ".join(f"{name}: {n}" for name, n in counts.items() if isinstance(n, int))
        print(f"{told}, problems: {len(findings.problems)}, warnings: {len(findings.warnings)}")
    if findings.problems:
        raise typer.Exit(2)


def _found(findings: Findings) -> dict[str, Any]:
    return {"problems": [p.sentence for p in findings.problems], "warnings": list(findings.warnings)}


def _counts(rubric: Rubric | None) -> dict[str, Any]:
    if rubric is None:
        return {"questions": 0, "dimensions": {}}
    asked = [q.dimension for q in rubric.questions]
    return {"questions": len(asked), "dimensions": {d: asked.count(d) for d in rubric.dimensions}}


def _sound(examined: Examined) -> Rubric:
    raise_first(p.sentence for p in examined.findings.problems)
    assert examined.rubric is not None
    return examined.rubric


def _step(action: Action) -> str:
    return _STEPS[action.do].format(action.target)
