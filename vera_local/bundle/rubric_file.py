"""From rubric.yaml to a checked rubric, with every mistake told in the words of the file. Knows no other file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from vera_local.bundle import checks
from vera_local.bundle.problem import raise_first
from vera_local.bundle.prompts import PERSONA_PROMPTS
from vera_local.bundle.rubric import Rubric
from vera_local.bundle.schema import PersonaSpec, RubricFile
from vera_local.bundle.source import Source
from vera_local.bundle.yaml_file import dotted, expected, load_yaml
from vera_local.errors import UserError


def load_rubric(file: Path) -> Rubric:
    """The rubric of a rubric.yaml; UserError with the first problem where it is not sound."""
    return parse(Source.read(file)).rubric()


def problems(file: Path) -> list[str]:
    """Every problem of a rubric.yaml as a sentence, empty where it is sound."""
    try:
        return examine(Source.read(file))[1]
    except UserError as error:
        return [str(error)]


def parse(source: Source) -> RubricFile:
    """All that a rubric.yaml says; UserError with the first problem and the number of further ones."""
    content, found = examine(source)
    raise_first(found)
    assert content is not None
    return content


def examine(source: Source) -> tuple[RubricFile | None, list[str]]:
    """What a rubric.yaml says, None where it cannot be understood, and its problems; UserError where it is no YAML."""
    data = load_yaml(source, "a rubric")
    try:
        content = RubricFile.model_validate(data)
    except ValidationError as error:
        return None, [f"{source.path}: {_sentence(e, data)}." for e in error.errors()]
    found = [*_personas(content.personas), *_simulator(content), *checks.problems(content.rubric())]
    return content, [f"{source.path}: {problem}." for problem in found]


def _personas(spec: PersonaSpec) -> Iterator[str]:
    for key, words in (("groups", spec.groups), ("columns", spec.columns)):
        for word in checks.repeated(words):
            yield f"personas.{key}: '{word}' is listed twice; remove one"
    controls = spec.controls.column if spec.controls else None
    named = {key: getattr(spec, key) for key in ("name", "group", "opening", "language", "seed")}
    for key, column in {**named, "controls.column": controls}.items():
        if column is not None and column not in spec.columns:
            yield f"personas.{key}: '{column}' is not among the columns; add it to personas.columns"


def _simulator(content: RubricFile) -> Iterator[str]:
    """What is needed for a model that plays personas, and is of no use without one."""
    given = {f"prompts.{key}": getattr(content.prompts, key) for key in PERSONA_PROMPTS}
    for key, value in {"end_signal": content.end_signal, **given}.items():
        if value is None and not content.scripted:
            yield f"{key} is missing; add it"
        if value is not None and content.scripted:
            yield f"{key} is for a model that plays a persona, and every persona's message is scripted; remove it"
    if content.earliest_end is not None and content.end_signal is None:
        yield "earliest_end is for a persona that can leave, and there is no end_signal; add that, or remove this"
    if content.earliest_end is not None and content.earliest_end > content.turns:
        yield f"earliest_end: {content.earliest_end} is later than the {content.turns} turns; lower it"


def _sentence(error: ErrorDetails, data: object) -> str:
    return f"{_place(error['loc'], data)} {expected(error)}"


def _place(loc: tuple[int | str, ...], data: Any) -> str:
    """The dotted key, entries counted from 1, starting from the question where it has an id."""
    key = dotted(loc)
    if loc[:1] != ("dimensions",) or loc[2:3] != ("questions",) or len(loc) < 4:
        return key
    question = data["dimensions"][loc[1]]["questions"][loc[3]]
    if not isinstance(question, dict) or not isinstance(question.get("id"), str):
        return key
    return f"question {question['id']}: {'.'.join(key.split('.')[4:]) or 'it'}"
