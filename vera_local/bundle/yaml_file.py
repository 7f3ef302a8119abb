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


MOST_NODES = 100_000
"""Values of a file, those that aliases repeat counted again; the largest rubric here has about a thousand."""


class _Loader(yaml.SafeLoader):
    """Refuses a key that is written twice, of which YAML would keep the last, and aliases that multiply."""

    def get_single_node(self) -> yaml.Node | None:
        node: yaml.Node | None = super().get_single_node()
        if node is not None and _size(node, {}) > MOST_NODES:
            raise yaml.MarkedYAMLError(problem="its aliases repeat too much; write less", problem_mark=node.start_mark)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"the key '{key.value}' is written twice; remove one"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _size(node: yaml.Node, known: dict[yaml.Node, int]) -> int:
    """How many values a node stands for; endless where it holds itself."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if node not in known:
        known[node] = MOST_NODES + 1
        parts = [part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,))]
        known[node] = 1 + sum(_size(part, known) for part in parts)
    return known[node]


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
