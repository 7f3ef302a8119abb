"""What VERA-MH's names of conversation files say, and such names for our own. Knows no file's content."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from itertools import count
from typing import NamedTuple

from vera_local.conversation import Conversation, Head

LONGEST = 120
"""Characters of a stem, so that a judge's name still fits behind it."""

_RUN = re.compile(r"_run(\d{1,9})(?=_|$)")
_PUBLISHED = re.compile(r"[0-9a-f]{6}_[\w .'+-]*_run\d{1,9}(_[\w .'+-]*)?")


class Named(NamedTuple):
    """`persona` is empty where the name holds none."""

    persona: str
    repeat: int


def read_name(stem: str) -> Named:
    """The persona is the second part between underscores, the repeat the number behind `_run` (1 where there is none).

    `stem` is the file's name without folder and suffix.
    """
    parts = stem.split("_")
    run = _RUN.search(stem)
    return Named(parts[1] if len(parts) > 1 else "", max(1, int(run[1])) if run else 1)


def file_stems(conversations: Iterable[Conversation | Head], model: str) -> dict[str, str]:
    """Conversation id -> the stem of its file: tag, persona, the model that played it, run. No two are the same.

    A conversation that already has such a name, because it was read from such a file, keeps it.
    """
    stems: dict[str, str] = {}
    taken: set[str] = set()
    for conversation in conversations:
        stem = next(s for s in _candidates(conversation, model) if s.casefold() not in taken)
        stems[conversation.id] = stem
        taken.add(stem.casefold())
    return stems


def _candidates(conversation: Conversation | Head, model: str) -> Iterable[str]:
    if _keeps(conversation):
        yield conversation.id
    persona = _plain(conversation.persona.replace(".", "").replace(" ", "_"))
    for attempt in count():
        tag = sha256(f"{conversation.id}/{attempt}".encode()).hexdigest()[:6]
        yield f"{tag}_{persona}_{_plain(model)}_run{conversation.repeat}"


def _keeps(conversation: Conversation | Head) -> bool:
    name = conversation.id
    known = Named(conversation.persona, conversation.repeat)
    return len(name) <= LONGEST and _PUBLISHED.fullmatch(name) is not None and read_name(name) == known


def _plain(name: str) -> str:
    """Without what a file system or a shell may stumble over."""
    return re.sub(r"[^\w.'+-]+", "-", name)[: LONGEST // 3]
