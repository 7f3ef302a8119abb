"""Requests with places to fill and paths into replies. Knows no service: JSON values in, JSON values out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_PLACE = re.compile(r"\{([a-z_]+)\}")


def parsed(template: Any) -> Any:
    """A template that is written as JSON text, read; any other as it is. Raises ValueError for what is no JSON."""
    if not isinstance(template, str):
        return template
    try:
        return json.loads(template)
    except ValueError as error:
        hint = '; a place stands in quotes, as in {"text": "{message}"}' if _PLACE.search(template) else ""
        raise ValueError(f"this is no JSON ({error}){hint}") from None


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """`template` with every text that is a place, such as "{message}", replaced by its value.

    A value takes its place whole, as JSON: it is never pasted into a text, and places in it stay as they are.
    """
    return _mapped(template, lambda text: values.get(_name(text) or "", text))


def mapped_texts(template: Any, change: Callable[[str], str]) -> Any:
    """`template` with every text in it changed."""
    return _mapped(template, change)


def places(template: Any) -> frozenset[str]:
    """The names of all places in it."""
    return frozenset(name for text in texts(template) if (name := _name(text)))


def must_fit(template: Any, known: frozenset[str]) -> None:
    """ValueError where a place is unknown, or stands inside a longer text."""
    for text in texts(template):
        name = _name(text)
        inside = [found for found in _PLACE.findall(text) if found in known]
        if name and name not in known:
            raise ValueError(f"{text} is no place to fill; there are {_listed(known)}")
        if inside and not name:
            raise ValueError(f"{{{inside[0]}}} has to stand alone: '{text[:60]}' holds more")


def texts(template: Any) -> Iterator[str]:
    """Every text of a JSON value, keys left out."""
    match template:
        case str():
            yield template
        case Mapping():
            for value in template.values():
                yield from texts(value)
        case list() | tuple():
            for value in template:
                yield from texts(value)


def at(value: Any, path: str) -> Any:
    """What stands at a dotted path such as `choices.0.text`; LookupError, naming the path, where nothing does."""
    for part in path.split("."):
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise LookupError(f"it has no {path}") from None
    return value


def _mapped(template: Any, change: Callable[[str], Any]) -> Any:
    match template:
        case str():
            return change(template)
        case Mapping():
            return {key: _mapped(value, change) for key, value in template.items()}
        case list() | tuple():
            return [_mapped(value, change) for value in template]
    return template


def _name(text: str) -> str | None:
    found = _PLACE.fullmatch(text)
    return found[1] if found else None


def _listed(known: frozenset[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(known)) or "none here"
