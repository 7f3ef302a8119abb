"""From rubric.yaml to a checked rubric, with every mistake told in the words of the file. Knows no other file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from vera_local.bundle import checks
from vera_local.bundle.problem import raise_first
from vera_local.bundle.prompts import PERSONA_PROMPTS
from vera_local.bundle.rubric import Rubric
from vera_local.bundle.schema import PersonaSpec, RubricFile
from vera_local.bundle.source import Source
from vera_local.errors import UserError

_EXPECTED = {
    "missing": "is missing; add it",
    "extra_forbidden": "is not a known key; remove it or correct its spelling",
    "string_type": "must be text; put it in quotes",
    "string_pattern_mismatch": "must not be empty; write a text",
    "float_type": "must be a number; write it without quotes",
    "less_than_equal": "is too large; write at most {le}",
    "int_type": "must be a whole number; write one without quotes",
    "bool_type": "must be true or false; write it without quotes",
    "list_type": "must be a list; write its entries after hyphens or in [ ]",
    "dict_type": "must be a mapping; write its entries as key: value",
    "model_type": "must be a mapping; write its entries as key: value",
    "too_short": "has too few entries; list at least {min_length}",
    "greater_than_equal": "is too small; write at least {ge}",
}


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
    data = _load_yaml(source)
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
    named = (("name", spec.name), ("group", spec.group), ("opening", spec.opening), ("controls.column", controls))
    for key, column in named:
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


def _sentence(error: ErrorDetails, data: object) -> str:
    context = error.get("ctx", {})
    if error["type"] == "value_error":
        expected = str(context["error"])
    else:
        known = _EXPECTED.get(error["type"])
        expected = known.format(**context) if known else error["msg"]
    return f"{_place(error['loc'], data)} {expected}"


def _place(loc: tuple[int | str, ...], data: Any) -> str:
    """The dotted key, entries counted from 1, starting from the question where it has an id."""
    dotted = ".".join(str(key + 1) if isinstance(key, int) else key for key in loc) or "the file"
    if loc[:1] != ("dimensions",) or loc[2:3] != ("questions",) or len(loc) < 4:
        return dotted
    question = data["dimensions"][loc[1]]["questions"][loc[3]]
    if not isinstance(question, dict) or not isinstance(question.get("id"), str):
        return dotted
    return f"question {question['id']}: {'.'.join(dotted.split('.')[4:]) or 'it'}"


class _Loader(yaml.SafeLoader):
    """Refuses a key that is written twice, of which YAML would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [(key.value, key.start_mark) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for i, (key, mark) in enumerate(keys):
            if key in (k for k, _ in keys[:i]):
                raise yaml.MarkedYAMLError(problem=f"the key '{key}' is written twice; remove one", problem_mark=mark)
        return super().construct_mapping(node, deep)


def _load_yaml(source: Source) -> object:
    text = source.text
    try:
        data: object = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        raise UserError(f"{source.path}{_mark(error)}: {_problem(error)}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{source.path}: it cannot be read as YAML ({reason}); correct that value.") from None
    if data is None:
        raise UserError(f"{source.path} is empty; write a rubric in it.")
    return data


def _mark(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _problem(error: yaml.MarkedYAMLError) -> str:
    if error.problem and "; " in error.problem:
        return error.problem
    return f"it is not valid YAML ({error.problem}); correct it there"
