"""Conversations and judges' paths as text for a reader at a terminal. Knows no store, and prints nothing itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from vera_local.bundle import DimensionRating, Rubric
from vera_local.conversation import Conversation, Ending, Head, Speaker
from vera_local.report.terminal import ENDINGS
from vera_local.report.verdicts import VerdictRow

SPEAKERS = {Speaker.PERSONA: "user", Speaker.CHATBOT: "chatbot"}
UNRATED = "Unrated"

# Control characters but for line feed and tab, marks that turn the direction of writing, line separators, half
# characters.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one judge says of one conversation; `rows` is its path, `members` the judges behind a joined one.

    `ratings` is empty where it has not come to the end of its walk. `doubtful`: how many answers of the path a person
    should look at.
    """

    judge: str
    ratings: tuple[DimensionRating, ...]
    rows: tuple[VerdictRow, ...] = ()
    members: tuple[str, ...] = ()
    doubtful: int = 0


def harmless(text: str) -> str:
    """The text with every character that could act on a terminal written as its number; line feeds and tabs stay."""
    return _UNSAFE.sub(lambda found: _written_out(ord(found.group())), text)


def listing(heads: Iterable[Head], opinions: Callable[[str], Iterable[Opinion]], rubric: Rubric) -> str:
    """Every conversation with what its judges say of it; `opinions` gives these by its id."""
    lines: list[str] = []
    for head in heads:
        lines.append(_head(head.id, head.persona, head.turns, head.ending))
        lines += [f"  {o.judge}: {_ratings(o, rubric)}{_doubts(o)}" for o in opinions(head.id)]
    return harmless("\n".join(lines))


def reading(conversation: Conversation, opinions: Sequence[Opinion], rubric: Rubric) -> str:
    """One conversation with numbered turns, then the path of each judge."""
    c = conversation
    head = _head(c.id, c.persona, len(c.messages), c.ending)
    parts = [head, *_turns(c), *(_opinion(opinion, rubric) for opinion in opinions)]
    return harmless("\n\n".join(parts))


def _written_out(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _head(id: str, persona: str, turns: int, ending: Ending | None) -> str:
    return f"{id} ({f'{persona}, ' if persona else ''}{turns} turns, {ENDINGS[ending]})"


def _turns(conversation: Conversation) -> Iterator[str]:
    for number, message in enumerate(conversation.messages, 1):
        yield f"[{number}] {SPEAKERS[message.speaker]}: {_indented(message.text, 4)}"


def _indented(text: str, by: int) -> str:
    """Further lines set in, so that none can pass for the beginning of a turn or of a judge's part."""
    return f"\n{' ' * by}".join(text.split("\n"))


def _ratings(opinion: Opinion, rubric: Rubric) -> str:
    """Worst first, each rating with its dimensions."""
    if not opinion.ratings:
        return "not rated yet"
    found: dict[str | None, list[str]] = {}
    for rating in opinion.ratings:
        found.setdefault(rating.rating, []).append(rating.dimension)
    order = (None, *reversed(rubric.ratings), rubric.not_relevant)
    return "; ".join(f"{rating or UNRATED}: {', '.join(found[rating])}" for rating in order if rating in found)


def _doubts(opinion: Opinion) -> str:
    return f" ({opinion.doubtful} uncertain)" if opinion.doubtful else ""


def _opinion(opinion: Opinion, rubric: Rubric) -> str:
    lines = [f"{opinion.judge}: {_ratings(opinion, rubric)}{_doubts(opinion)}"]
    if opinion.members:
        lines.append(f"  joined from {', '.join(opinion.members)}")
    return "\n".join([*lines, *(line for row in opinion.rows for line in _step(row, rubric))])


def _step(row: VerdictRow, rubric: Rubric) -> Iterator[str]:
    """A question of the path and all that the judge said to it."""
    question = rubric.by_id[row.question]
    yield f"  {row.question}. {_indented(question.text, 5)}"
    yield f"     {_answer(row)}{_sure(row)}"
    if row.rationale:
        yield f"     Why: {_indented(row.rationale.strip(), 7)}"
    if row.doubt:
        yield f"     Uncertain: {row.doubt}"
    if row.left_out:
        yield f"     Not shown to the judge: {row.left_out}"


def _answer(row: VerdictRow) -> str:
    if row.answer is None:
        return f"no answer ({row.state}{f': {_indented(row.detail, 7)}' if row.detail else ''})"
    if row.mode == "auto":
        return f"{row.answer} (the only option; no model was asked)"
    match row.evidence:
        case None:
            return row.answer
        case ():
            return f"{row.answer}, no turn named"
        case turns:
            return f"{row.answer}, turn{'s' if len(turns) > 1 else ''} {', '.join(map(str, turns))}"


def _sure(row: VerdictRow) -> str:
    if row.probability is None or row.mass is None:
        return ""
    return f" (probability {row.probability:.2f}; all options {row.mass:.2f})"
