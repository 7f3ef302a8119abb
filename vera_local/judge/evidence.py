"""The turns that a judge names for its answer, held to those that exist. Knows no engine."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vera_local.bundle import Question

NONE = "none"
MOST = 3
"""Turns that a judge may name."""

PLAIN = frozenset({"Yes", "No", "Not Relevant"})
"""Answers of a question that looks for one thing; other answers classify."""


def rests_on_turns(question: Question, answer: str) -> bool:
    """Whether an answer has to be located: it is a finding, or the question classifies."""
    finding = question.option(answer).severity is not None
    return finding or not {o.answer for o in question.options} <= PLAIN


def evidence_pattern(turns: Sequence[int]) -> str:
    """A pattern of `none`, or one to three of the turns with commas between; only `none` where there is no turn."""
    if not turns:
        return f"{NONE}$"
    one = f"({'|'.join(map(str, turns))})"
    # The anchor, as in engine.grammar: without it "1" would be complete before "12".
    return f"({NONE}|{one}(, {one}){{0,{MOST - 1}}})$"


def longest_evidence(turns: Sequence[int]) -> int:
    """Tokens that are enough to name any three turns, as no token is shorter than a character, and to end."""
    return max(len(NONE), MOST * (max(map(len, map(str, turns)), default=0) + 2)) + 1


def read_evidence(text: str, turns: Sequence[int]) -> tuple[int, ...] | None:
    """The turns named, in the order given, each once; None where the text is anything else, whatever was promised."""
    if text == NONE:
        return ()
    named = text.split(", ")
    known = {str(turn) for turn in turns}
    if len(named) > MOST or not all(re.fullmatch(r"[0-9]+", part) and part in known for part in named):
        return None
    return tuple(dict.fromkeys(map(int, named)))
