"""VERA-MH's conversation text: messages behind a speaker's label, blank lines between. Knows no file and no persona.

The format escapes nothing, so not every message can be told from the layout around it; `why_not_text` says which.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from vera_local.conversation import Ending, Message, Speaker
from vera_local.errors import UserError
from vera_local.transcripts.recording import SPEAKERS

LABELS = {Speaker.PERSONA: "user", Speaker.CHATBOT: "chatbot"}
EMPTY = "No conversation recorded."
"""All that a file of a conversation without messages holds."""
END_TOKEN = "<END OF CONVERSATION>"
"""What VERA-MH's persona writes to leave; it stays in the text."""

_LABEL = re.compile(r"^(user|chatbot|agent):(?= |$)", re.MULTILINE)  # versions before 1.0 wrote "agent"
_TRAILER = re.compile(r"\[CONVERSATION ENDED\b.*\]")


class Text(NamedTuple):
    """What a text holds: `ending` is PERSONA where it says that the persona left, else RECORDED."""

    messages: tuple[Message, ...]
    ending: Ending
    notes: tuple[str, ...]


def read_text(text: str, place: str) -> Text:
    """The messages of `text`, each as it was written; `place` names the file in notes and errors.

    A label begins a message at the start of a line that follows a blank one; where no label follows a blank line, at
    the start of any line. Raises UserError where the text does not begin with a label.
    """
    body, left = _without_trailer(_unix(text))
    if body.strip() == EMPTY:
        return Text((), Ending.RECORDED, (f"{place}: this conversation has no message.",))
    labels = _labels(body)
    if not labels or body[: labels[0].start()].strip():
        line = len(body[: len(body) - len(body.lstrip())].split("\n"))
        raise UserError(f"{place}, line {line}: a conversation begins with 'user:' or 'chatbot:'; correct the file.")
    starts, gap = _starts(body, labels)
    messages = tuple(_messages(body, starts, gap))
    left = left or _says_goodbye(messages)
    notes = (*_strays(body, labels, starts, place), *_in_a_row(body, starts, place))
    return Text(messages, Ending.PERSONA if left else Ending.RECORDED, notes)


def write_text(messages: Sequence[Message]) -> str:
    """The messages as a file's text."""
    if not messages:
        return f"{EMPTY}\n"
    return "\n\n".join(f"{LABELS[m.speaker]}: {m.text}" for m in messages) + "\n"


def why_not_text(messages: Sequence[Message]) -> str | None:
    """Why `write_text` does not carry these messages to every reader, None where it does."""
    text = write_text(messages)
    if "\r" in text:
        return "a message holds a carriage return"
    if len(_LABEL.findall(text)) != len(messages):
        return "a line of a message looks like a speaker's label"
    if read_text(text, "").messages != tuple(messages):
        return "the last message ends with a line end or an end mark"
    return None


def _unix(text: str) -> str:
    """With plain line ends, where a whole file has those of Windows; a carriage return elsewhere is text."""
    windows = text.count("\r\n")
    return text.replace("\r\n", "\n") if windows and windows == text.count("\n") else text


def _without_trailer(text: str) -> tuple[str, bool]:
    """The text without the line that says that the conversation was ended, and whether it had one."""
    body, _, last = text.rstrip().rpartition("\n")
    return (body, True) if _TRAILER.fullmatch(last) else (text, False)


def _labels(text: str) -> list[re.Match[str]]:
    """Every line that begins with a label; of `chatbot` and `agent` a file uses the one that it uses first."""
    found = list(_LABEL.finditer(text))
    sides = [m[1] for m in (*_spaced(text, found), *found) if m[1] != "user"]
    return [m for m in found if m[1] in ("user", *sides[:1])]


def _spaced(text: str, labels: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """The labels that follow a blank line, and the first one."""
    return [*labels[:1], *(m for m in labels[1:] if text.endswith("\n\n", 0, m.start()))]


def _starts(text: str, labels: Sequence[re.Match[str]]) -> tuple[Sequence[re.Match[str]], int]:
    """The labels that begin messages, and how many line ends part a message from the next label."""
    spaced = _spaced(text, labels)
    return (labels, 1) if len(spaced) == 1 else (spaced, 2)


def _messages(text: str, starts: Sequence[re.Match[str]], gap: int) -> list[Message]:
    ends = [following.start() - gap for following in starts[1:]]
    bodies = [text[m.end() : end].removeprefix(" ") for m, end in zip(starts, ends, strict=False)]
    bodies.append(text[starts[-1].end() :].removeprefix(" ").rstrip("\n"))
    return [Message(SPEAKERS[m[1]], body) for m, body in zip(starts, bodies, strict=True)]


def _says_goodbye(messages: Sequence[Message]) -> bool:
    last = messages[-1]
    return last.speaker is Speaker.PERSONA and END_TOKEN in last.text.upper()


def _strays(text: str, labels: Sequence[re.Match[str]], starts: Sequence[re.Match[str]], place: str) -> tuple[str, ...]:
    begun = {m.start() for m in starts}
    return tuple(
        f"{place}, line {_line(text, m)}: '{m[0]}' follows no blank line and was read as text of the message."
        for m in labels
        if m.start() not in begun
    )


def _in_a_row(text: str, starts: Sequence[re.Match[str]], place: str) -> tuple[str, ...]:
    return tuple(
        f"{place}, line {_line(text, after)}: a second message of the {after[1]} in a row."
        for before, after in pairwise(starts)
        if before[1] == after[1]
    )


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1
