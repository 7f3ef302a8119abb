"""Conversations as CSV, one row per message. Knows no file and no persona."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from vera_local.conversation import Conversation, Ending, Message
from vera_local.errors import UserError
from vera_local.transcripts.recording import Recording, speaker_of

SIDES = ("speaker", "role")


class _Row(NamedTuple):
    line: int
    cells: Mapping[str, str]


def read_table(text: str, place: str) -> tuple[Recording, ...]:
    """The conversations of `text`, in the order of their first rows.

    Columns: conversation, turn (1, 2, ...), speaker or role, text; also persona, if known. `place` names the file in
    errors. Raises UserError, naming the line, for a row that cannot be understood.
    """
    rows: dict[str, list[_Row]] = {}
    for row in _rows(text, place):
        rows.setdefault(row.cells["conversation"], []).append(row)
    return tuple(Recording(_conversation(id, its, place)) for id, its in rows.items())


def _rows(text: str, place: str) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    line = 1
    try:
        for cells in reader:
            if not header:
                header = _header(cells, place)
            elif cells:
                yield _Row(line, _cells(header, cells, f"{place}, line {line}"))
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{place}, line {line}: this is no CSV ({error}); correct the row.") from None


def _header(cells: list[str], place: str) -> list[str]:
    names = ["speaker" if name in SIDES else name for name in (cell.strip().lower() for cell in cells)]
    for name in ("conversation", "turn", "speaker", "text"):
        if names.count(name) != 1:
            told = " or ".join(SIDES) if name == "speaker" else name
            raise UserError(f"{place}, line 1: the table needs exactly one column {told}; correct the header.")
    return names


def _cells(header: list[str], cells: list[str], place: str) -> dict[str, str]:
    if len(cells) != len(header):
        raise UserError(f"{place}: {len(cells)} cells where the header has {len(header)}; correct the row.")
    row = dict(zip(header, cells, strict=True))
    if not row["conversation"]:
        raise UserError(f"{place}: the conversation has no name; give it one.")
    return row


def _conversation(id: str, rows: list[_Row], place: str) -> Conversation:
    numbered = sorted((_turn(row, place), row) for row in rows)
    for turn, (given, row) in enumerate(numbered, 1):
        if given != turn:
            raise UserError(f"{place}, line {row.line}: turn {given} of '{id}' stands where turn {turn} belongs.")
    persona = rows[0].cells.get("persona", "")
    other = next((row for row in rows if row.cells.get("persona", "") != persona), None)
    if other is not None:
        raise UserError(f"{place}, line {other.line}: '{id}' has another persona in an earlier row; correct it.")
    return Conversation(id, persona, 1, tuple(_message(row, place) for _, row in numbered), Ending.RECORDED)


def _turn(row: _Row, place: str) -> int:
    try:
        return int(row.cells["turn"])
    except ValueError:
        raise UserError(f"{place}, line {row.line}: turn '{row.cells['turn']}' is no whole number.") from None


def _message(row: _Row, place: str) -> Message:
    return Message(speaker_of(row.cells["speaker"], f"{place}, line {row.line}"), row.cells["text"])
