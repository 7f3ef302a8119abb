"""Personas: reading their table and choosing some. Knows no prompt, and no meaning of a column but name and group."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import zip_longest
from pathlib import Path

from vera_local.bundle.checks import repeated
from vera_local.bundle.schema import ControlsSpec, PersonaSpec
from vera_local.bundle.source import Source
from vera_local.errors import UserError


@dataclass(frozen=True)
class Persona:
    """Who the simulator plays: a unique name, a group to report by, and every column as text (None is a word).

    `opening` is the first message word for word, None where a model writes it. A `control` stands beside the personas
    that the bundle is about, so that false alarms can be counted.
    """

    name: str
    group: str
    fields: dict[str, str]
    opening: str | None = None
    control: bool = False


@dataclass(frozen=True)
class _Row:
    """The fields of one line, lines counted from 1 with the header as the first."""

    file: Path
    line: int
    values: list[str]

    def error(self, problem: str) -> UserError:
        return UserError(f"{self.file}, line {self.line}: {problem}.")


def load_personas(file: Path, spec: PersonaSpec) -> tuple[Persona, ...]:
    """The personas of a tab-separated file with a header, in file order; UserError where it is not as `spec` says.

    Quotes are plain characters; empty lines are passed over; columns beyond those of `spec` are kept.
    """
    return parse(Source.read(file), spec)


def parse(source: Source, spec: PersonaSpec) -> tuple[Persona, ...]:
    """`load_personas` for a file already read."""
    rows = _rows(source)
    header = next(rows, None)
    if header is None:
        raise UserError(f"{source.path} is empty; write a header line and one line per persona.")
    _check_header(header, spec)
    personas = tuple(_persona(row, header.values, spec) for row in _without_twins(rows, header.values, spec))
    if not personas:
        raise UserError(f"{source.path} holds no persona; write one line per persona below the header.")
    if spec.controls is not None and len({p.control for p in personas}) == 1:
        sort = "only" if personas[0].control else "no"
        raise UserError(
            f"{source.path}: there are {sort} controls, rows with '{spec.controls.value}' in column "
            f"'{spec.controls.column}'; correct the rows, or personas.controls in the rubric."
        )
    return personas


def _rows(source: Source) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(source.text, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
    try:
        for values in reader:
            if values:
                yield _Row(source.path, reader.line_num, values)
    except csv.Error as error:
        raise UserError(f"{source.path}, line {reader.line_num}: no table line ({error}); correct it.") from None


def _check_header(header: _Row, spec: PersonaSpec) -> None:
    if twice := repeated(header.values):
        raise header.error(f"the column {_list(twice)} occurs twice; remove or rename one")
    if missing := [column for column in spec.columns if column not in header.values]:
        raise header.error(f"there is no column {_list(missing)}; add it to the header, with tabs between columns")


def _without_twins(rows: Iterator[_Row], columns: list[str], spec: PersonaSpec) -> Iterator[_Row]:
    seen: dict[str, int] = {}
    for row in rows:
        if len(row.values) != len(columns):
            raise row.error(f"it has {len(row.values)} fields and the header {len(columns)}; set the tabs right")
        name = row.values[columns.index(spec.name)]
        if name in seen:
            raise row.error(f"the name '{name}' is already on line {seen[name]}; give each persona its own")
        seen[name] = row.line
        yield row


def _persona(row: _Row, columns: list[str], spec: PersonaSpec) -> Persona:
    fields = dict(zip(columns, row.values, strict=True))
    name, group = fields[spec.name], fields[spec.group]
    if not name or name != name.strip():
        raise row.error(f"the name in column '{spec.name}' is empty or has blanks at an end; write a plain name")
    if group not in spec.groups:
        raise row.error(f"'{group}' in column '{spec.group}' is no group; use one of {_list(spec.groups)}")
    opening = fields[spec.opening] if spec.opening is not None else None
    if opening is not None and not opening.strip():
        raise row.error(f"the first message in column '{spec.opening}' is empty; write it there")
    return Persona(name, group, fields, opening, _is_control(fields, spec.controls))


def _is_control(fields: dict[str, str], controls: ControlsSpec | None) -> bool:
    return controls is not None and fields[controls.column] == controls.value


def choose(
    personas: Sequence[Persona], wanted: int | Sequence[str], groups: Sequence[str] | None = None
) -> tuple[Persona, ...]:
    """Some personas: a number of them spread evenly over the groups, or those named, in the order named.

    A number takes the first of each group, then the second of each, and so on. The groups come in the order of
    `groups`, or else as the personas first show them. UserError for a number that is not there or an unknown name.
    """
    if isinstance(wanted, int):
        return _spread(personas, wanted, groups)
    return _named(personas, wanted)


def _spread(personas: Sequence[Persona], wanted: int, groups: Sequence[str] | None) -> tuple[Persona, ...]:
    if not 1 <= wanted <= len(personas):
        raise UserError(f"{wanted} personas are wanted; choose a number from 1 to {len(personas)}, or names.")
    order = groups if groups is not None else list(dict.fromkeys(p.group for p in personas))
    columns = [[p for p in personas if p.group == group] for group in order]
    rounds = [p for row in zip_longest(*columns) for p in row if p is not None]
    return tuple(rounds[:wanted])


def _named(personas: Sequence[Persona], names: Sequence[str]) -> tuple[Persona, ...]:
    known = {p.name: p for p in personas}
    if not names:
        raise UserError("no persona is named; give at least one name, or a number.")
    if twice := repeated(names):
        raise UserError(f"the persona {_list(twice)} is named twice; name each one once.")
    for name in names:
        if name not in known:
            raise UserError(f"there is no persona '{name}'; did you mean '{_nearest(name, known)}'?")
    return tuple(known[name] for name in names)


def _nearest(name: str, known: dict[str, Persona]) -> str:
    by_case = {k.casefold(): k for k in known}
    return by_case[get_close_matches(name.casefold(), by_case, n=1, cutoff=0.0)[0]]


def _list(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)
