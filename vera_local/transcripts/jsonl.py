"""One conversation per line, in JSON: our own transcripts, or chat messages. Knows no file and no persona."""

from __future__ import annotations

import json
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticSerializationError

from vera_local.conversation import Conversation, Ending, Message
from vera_local.errors import UserError
from vera_local.transcripts.recording import Recording, speaker_of

INSTRUCTIONS = frozenset({"system", "developer"})
"""Roles of messages that are no part of the conversation."""


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)

    speaker: str = Field(validation_alias=AliasChoices("speaker", "role"))
    text: str = Field(validation_alias=AliasChoices("text", "content"))
    turn: int | None = None


class _Line(BaseModel):
    """`ending` is null where a run of ours was not finished, and left out where the file knows nothing of endings."""

    model_config = ConfigDict(frozen=True)

    id: str | None = Field(default=None, min_length=1)
    persona: str = ""
    repeat: int = Field(default=1, ge=1, lt=10**9)
    ending: Ending | None = Ending.RECORDED
    messages: tuple[_Message, ...]


def read_jsonl(text: str, place: str, stem: str) -> tuple[Recording, ...]:
    """The conversations of `text`; one without an id is named by `stem` and its line.

    `place` names the file in errors. Raises UserError, naming the line, for what is no conversation.
    """
    found: dict[str, Recording] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        recording = _recording(line, f"{place}, line {number}", f"{stem}-{number}")
        if recording.conversation.id in found:
            raise UserError(f"{place}, line {number}: '{recording.conversation.id}' is there already; rename one.")
        found[recording.conversation.id] = recording
    return tuple(found.values())


def _recording(line: str, place: str, name: str) -> Recording:
    try:
        content = _Line.model_validate(json.loads(line))
        content.model_dump_json()
    except ValidationError as error:
        raise UserError(f"{place}: {_told(error)}.") from None
    except PydanticSerializationError:
        raise UserError(f"{place}: half of a surrogate pair stands in the text; remove it.") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{place}: this is no JSON object ({error}); write one conversation per line.") from None
    said = tuple(m for m in content.messages if m.speaker not in INSTRUCTIONS)
    dropped = len(content.messages) - len(said)
    notes = (f"{place}: {dropped} message(s) of the role system or developer were left out.",) if dropped else ()
    conversation = Conversation(
        id=content.id or name,
        persona=content.persona,
        repeat=content.repeat,
        messages=tuple(_message(m, turn, place) for turn, m in enumerate(said, 1)),
        ending=content.ending,
    )
    return Recording(conversation, notes)


def _message(message: _Message, turn: int, place: str) -> Message:
    if message.turn not in (None, turn):
        raise UserError(f"{place}: turn {message.turn} stands where turn {turn} belongs; put the messages in order.")
    return Message(speaker_of(message.speaker, f"{place}, message {turn}"), message.text)


def _told(error: ValidationError) -> str:
    found: Any = error.errors(include_url=False)[0]
    key = ".".join(str(part + 1 if isinstance(part, int) else part) for part in found["loc"])
    message: str = found["msg"]
    return f"{key}: {message[:1].lower()}{message[1:]}" if key else "this is no object with messages"
