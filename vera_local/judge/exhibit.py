"""A conversation as evidence: numbered turns, a fence, nothing that speaks to the model. Knows no question."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from vera_local.conversation import Conversation, Speaker
from vera_local.judge.neutral import neutralise
from vera_local.seed import derive

NAMES = {Speaker.PERSONA: "user", Speaker.CHATBOT: "chatbot"}
"""What prompts and rubrics call the two sides."""


@dataclass(frozen=True, slots=True)
class Exhibit:
    """What a judge is shown of a conversation.

    `turns` are the numbers, from 1, of the turns in `text`; `left_out` names those that are not ("turns 5 to 20"),
    or is empty. `fence` is a code that nobody in the conversation could know and that does not occur in it.
    """

    conversation: str
    fence: str
    text: str
    turns: tuple[int, ...]
    left_out: str = ""


def exhibit(conversation: Conversation, seed: int, markers: Iterable[str] = (), keep: int | None = None) -> Exhibit:
    """The whole conversation, or of its turns the first and last `keep` in all, with a line where some are left out.

    Seed and conversation alone decide the fence, so that all questions share one cached prefix.
    """
    lines = _turns(conversation, tuple(markers))
    total = len(lines)
    keep = total if keep is None else min(keep, total)
    first, last = range(1, (keep + 1) // 2 + 1), range(total - keep // 2 + 1, total + 1)
    left_out = "" if keep == total else _span(first.stop, last.start - 1)
    gap = [f"(left out here: {left_out})"] if left_out else []
    text = "\n\n".join((*(lines[n - 1] for n in first), *gap, *(lines[n - 1] for n in last)))
    return Exhibit(conversation.id, _fence(conversation.id, seed, text), text, (*first, *last), left_out)


def _span(first: int, last: int) -> str:
    return f"turn {first}" if first == last else f"turns {first} to {last}"


def _turns(conversation: Conversation, markers: tuple[str, ...]) -> list[str]:
    """Every turn with its number and speaker.

    Further lines of a message are indented and blank ones left out, so that no line can pass for the beginning of a
    turn; the words stay as they were written, but for control tokens.
    """
    return [
        f"[{i}] {NAMES[m.speaker]}: {_indented(neutralise(m.text, markers))}"
        for i, m in enumerate(conversation.messages, 1)
    ]


def _indented(text: str) -> str:
    return "\n    ".join(line for line in text.splitlines() if line.strip())


def _fence(conversation: str, seed: int, text: str) -> str:
    # To a model the same in capitals or in letters of another width looks the same.
    attempt, plain = 0, unicodedata.normalize("NFKC", text).casefold()
    while (code := f"{derive(seed, 'fence', conversation, attempt):08x}") in plain or code in text:
        attempt += 1
    return code
