"""From the rows of the official persona files to personas and their groups. Knows no rubric and no prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vera_local.bundle.personas import Persona
from vera_local.bundle.problem import Findings
from vera_local.bundle.upstream.table import Row, Table
from vera_local.plain import holds_unseen

NAME, SEED = "Name", "Final Seed Phrase"
LONG_LEVEL = "Current Suicide Risk Level"
SHORT_LEVEL = f"Short {LONG_LEVEL}"
GROUP_COLUMNS = (SHORT_LEVEL, "Current Risk Level", "Harm imminence")
"""The column to report by, in suicide-risk personas from 1.1, in older ones, and in those at risk from others."""

_ORDER = ("none", "low", "moderate", "medium", "high", "imminent", "immediate")
"""Risk levels by harm; other groups come after them, as the file first shows them."""


@dataclass(frozen=True)
class People:
    """The personas of a bundle; `groups` are the values of `group_column` up to their explanation, in order."""

    personas: tuple[Persona, ...]
    group_column: str
    groups: tuple[str, ...]


def read(tables: Sequence[Table], annotations: Sequence[str], findings: Findings) -> People | None:
    """The personas of all tables; None, and a problem, where a table has no column for names or groups."""
    wanted = (*annotations, *GROUP_COLUMNS)
    group_column = next((c for c in wanted if all(c in table.columns for table in tables)), None)
    for table in tables:
        if NAME not in table.columns:
            findings.problem(table.path, f"line 1: there is no column '{NAME}'; put the published file there")
            return None
        if group_column is None:
            listed = ", ".join(f"'{column}'" for column in wanted)
            findings.problem(table.path, f"line 1: there is no column to report by; it needs one of {listed}")
            return None
    assert group_column is not None
    personas = _personas(tables, group_column, findings)
    return People(personas, group_column, _groups(personas))


def _personas(tables: Sequence[Table], group_column: str, findings: Findings) -> tuple[Persona, ...]:
    found: dict[str, Persona] = {}
    for table in tables:
        if not table.rows:
            findings.problem(table.path, "it holds no persona; put the published file there")
        for row in table.rows:
            _check(table, row, group_column, found, findings)
            name = row[NAME]
            found[name] = Persona(name, _label(row[group_column]), row.cells, seed=row.cells.get(SEED, ""))
    return tuple(found.values())


def _check(table: Table, row: Row, group_column: str, known: dict[str, Persona], findings: Findings) -> None:
    name, place = row[NAME], f"line {row.line}: persona '{row[NAME]}'"
    if row.width < len(table.columns):
        text = f"it has {row.width} cells and the header {len(table.columns)}"
        findings.problem(table.path, f"{place}: {text}; set the tabs right")
    if holds_unseen(name):
        findings.problem(table.path, f"{place}: the name holds what nobody sees; write a plain one")
    if not name or name in known:
        wrong = "the name is already taken" if name else "it has no name"
        findings.problem(table.path, f"{place}: {wrong}; give each persona its own")
    if not row[group_column]:
        findings.problem(table.path, f"{place}: column '{group_column}' is empty; fill it")
    _compare_levels(table.path, row, place, findings)


def _compare_levels(path: Path, row: Row, place: str, findings: Findings) -> None:
    """The long level begins with the short one, in every row but those that were spoilt."""
    short, long = row[SHORT_LEVEL], row[LONG_LEVEL]
    if short and LONG_LEVEL in row.cells and _label(long).casefold() != short.casefold():
        found = long if len(long) <= 60 else f"{long[:57]}..."
        text = f"column '{LONG_LEVEL}' says '{found}' where '{SHORT_LEVEL}' says '{short}'"
        findings.warn(path, f"{place}: {text}; the persona is used as it is, grouped under '{short}'")


def _label(value: str) -> str:
    """A value without the explanation in brackets behind it."""
    return value.split(" (")[0].strip()


def _groups(personas: Sequence[Persona]) -> tuple[str, ...]:
    found = list(dict.fromkeys(p.group for p in personas))
    known = sorted((g for g in found if g.casefold() in _ORDER), key=lambda g: _ORDER.index(g.casefold()))
    return (*known, *(g for g in found if g not in known))
