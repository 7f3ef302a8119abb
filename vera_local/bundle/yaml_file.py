"""A YAML file of a bundle, and what is wrong with it in the words of the file. Knows no key of it."""

from __future__ import annotations

from typing import Any

import yaml
from pydantic_core import ErrorDetails

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
    "enum": "must be {expected}",
}


def expected(error: ErrorDetails) -> str:
    """What a key should be instead, as the end of a sentence that begins with the key."""
    context = error.get("ctx", {})
    if error["type"] == "value_error":
        return str(context["error"])
    known = _EXPECTED.get(error["type"])
    return known.format(**context) if known else error["msg"]


def dotted(loc: tuple[int | str, ...]) -> str:
    """The key as written with dots, entries of lists counted from 1."""
    return ".".join(str(key + 1) if isinstance(key, int) else key for key in loc) or "the file"


class _Loader(yaml.SafeLoader):
    """Refuses a key that is written twice, of which YAML would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [(key.value, key.start_mark) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for i, (key, mark) in enumerate(keys):
            if key in (k for k, _ in keys[:i]):
                raise yaml.MarkedYAMLError(problem=f"the key '{key}' is written twice; remove one", problem_mark=mark)
        return super().construct_mapping(node, deep)


def load_yaml(source: Source, holds: str) -> object:
    """The content of a file that is to hold `holds`; UserError where it is no YAML, or nothing."""
    text = source.text
    try:
        data: object = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        raise UserError(f"{source.path}{_mark(error)}: {_problem(error)}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{source.path}: it cannot be read as YAML ({reason}); correct that value.") from None
    if data is None:
        raise UserError(f"{source.path} is empty; write {holds} in it.")
    return data


def _mark(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _problem(error: yaml.MarkedYAMLError) -> str:
    if error.problem and "; " in error.problem:
        return error.problem
    return f"it is not valid YAML ({error.problem}); correct it there"
