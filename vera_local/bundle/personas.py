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
from vera_local.bundle.problem import raise_first
from vera_local.bundle.schema import ControlsSpec, PersonaSpec
from vera_local.bundle.source import Source
from vera_local.errors import UserError
from vera_local.plain import holds_unseen


@dataclass(frozen=True)
class Persona:
    """Who the simulator plays: a unique name, a group to report by, and every column as text (None is a word).

    `opening` is the first message word for word, None where a model writes it. A `control` stands beside the personas
    that the bundle is about, so that false alarms can be counted. `language`: what it writes, by name or code; None:
    that of the prompts. `seed`: words that show how it sounds and that it must not repeat; empty where it has none.
    """

    name: str
    group: str
    fields: dict[str, str]
    opening: str | None = None
    control: bool = False
    language: str | None = None
    seed: str = ""


@dataclass(frozen=True)
class _Row:
    """The fields of one line, lines counted from 1 with the header as the first."""

    file: Path
    line: int
    values: list[str]

    def sentence(self, fault: str) -> str:
        return f"{self.file}, line {self.line}: {fault}."


def load_personas(file: Path, spec: PersonaSpec) -> tuple[Persona, ...]:
    """The personas of a tab-separated file with a header, in file order; UserError where it is not as `spec` says.

    Quotes are plain characters; empty lines are passed over; columns beyond those of `spec` are kept.
    """
    return parse(Source.read(file), spec)


def parse(source: Source, spec: PersonaSpec) -> tuple[Persona, ...]:
    """`load_personas` for a file already read."""
    raise_first(problems(source, spec))
    header, *rows = _rows(source)
    return tuple(_persona(dict(zip(header.values, row.values, strict=True)), spec) for row in rows)


def problems(source: Source, spec: PersonaSpec) -> list[str]:
    """Everything wrong with the file, each as a sentence; empty where it is as `spec` says."""
    try:
        rows = list(_rows(source))
    except UserError as error:
        return [str(error)]
    if not rows:
        return [f"{source.path} is empty; write a header line and one line per persona."]
    found = [rows[0].sentence(fault) for fault in _header_faults(rows[0].values, spec)]
    if not found and len(rows) == 1:
        return [f"{source.path} holds no persona; write one line per persona below the header."]
    return found or list(_rows_faults(rows, spec)) or list(_controls_faults(source, rows, spec))


def _rows(source: Source) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(source.text, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
    try:
        for values in reader:
            if values:
                yield _Row(source.path, reader.line_num, values)
    except csv.Error as error:
        raise UserError(f"{source.path}, line {reader.line_num}: no table line ({error}); correct it.") from None


def _header_faults(columns: list[str], spec: PersonaSpec) -> Iterator[str]:
    if twice := repeated(columns):
        yield f"the column {_list(twice)} occurs twice; remove or rename one"
    if missing := [column for column in _named_columns(spec) if column not in columns]:
        yield f"there is no column {_list(missing)}; add it to the header, with tabs between columns"


def _named_columns(spec: PersonaSpec) -> list[str]:
    """Every column that the bundle counts on, once."""
    meant = (spec.name, spec.group, spec.opening, spec.language, spec.seed)
    control = None if spec.controls is None else spec.controls.column
    return [column for column in dict.fromkeys((*spec.columns, *meant, control)) if column is not None]


def _rows_faults(rows: list[_Row], spec: PersonaSpec) -> Iterator[str]:
    columns = rows[0].values
    seen: dict[str, int] = {}
    for row in rows[1:]:
        if len(row.values) != len(columns):
            yield row.sentence(f"it has {len(row.values)} fields and the header {len(columns)}; set the tabs right")
            continue
        fields = dict(zip(columns, row.values, strict=True))
        yield from (row.sentence(fault) for fault in _faults(fields, spec, seen))
        seen.setdefault(fields[spec.name], row.line)


def _faults(fields: dict[str, str], spec: PersonaSpec, seen: dict[str, int]) -> Iterator[str]:
    """What is wrong with one persona; `seen` are the names above it and their lines."""
    name, group = fields[spec.name], fields[spec.group]
    if not name or name != name.strip() or holds_unseen(name):
        yield f"the name in column '{spec.name}' is empty, has blanks at an end or what nobody sees; write a plain name"
    elif name in seen:
        yield f"the name '{name}' is already on line {seen[name]}; give each persona its own"
    if group not in spec.groups:
        yield f"'{group}' in column '{spec.group}' is no group; use one of {_list(spec.groups)}"
    if spec.opening is not None and not fields[spec.opening].strip():
        yield f"the first message in column '{spec.opening}' is empty; write it there"
    if spec.language is not None and not fields[spec.language].strip():
        yield f"the language in column '{spec.language}' is empty; write its name there"


def _controls_faults(source: Source, rows: list[_Row], spec: PersonaSpec) -> Iterator[str]:
    controls = spec.controls
    if controls is None:
        return
    column = rows[0].values.index(controls.column)
    kinds = {row.values[column] == controls.value for row in rows[1:]}
    if len(kinds) == 1:
        sort = "only" if True in kinds else "no"
        yield (
            f"{source.path}: there are {sort} controls, rows with '{controls.value}' in column "
            f"'{controls.column}'; correct the rows, or personas.controls in the rubric."
        )


def _persona(fields: dict[str, str], spec: PersonaSpec) -> Persona:
    opening = fields[spec.opening] if spec.opening is not None else None
    return Persona(
        name=fields[spec.name],
        group=fields[spec.group],
        fields=fields,
        opening=opening,
        control=_is_control(fields, spec.controls),
        language=fields[spec.language].strip() if spec.language is not None else None,
        seed=fields[spec.seed] if spec.seed is not None else "",
    )


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
