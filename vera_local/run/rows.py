"""A verdict as the columns of a row in the store, and back. Knows no table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vera_local.engine.seam import Usage
from vera_local.judge import Confidence, Mode, State, Verdict

VERDICT = (
    "question, state, answer, mode, text, v.detail, rationale, evidence, confidence, left_out,"
    " prompt_tokens, cached_tokens, output_tokens"
)
"""The columns of a verdict in a table called v, in the order in which `verdict_of` reads them."""


COLUMNS = VERDICT.replace("v.", "").split(", ")

ADD_VERDICT = (
    f"insert into verdicts (conversation, judge, place, {', '.join(COLUMNS)}) values (?, ?, ?{', ?' * len(COLUMNS)})"
)
"""Takes conversation, judge, place and the columns of a verdict."""


def columns_of(v: Verdict) -> tuple[Any, ...]:
    """The columns VERDICT; evidence is a JSON array and confidence a JSON object, null where there is none."""
    return (
        v.question,
        v.state,
        v.answer,
        v.mode,
        v.text,
        v.detail,
        v.rationale,
        None if v.evidence is None else json.dumps(v.evidence),
        None if v.confidence is None else json.dumps(v.confidence.options),
        v.left_out,
        v.usage.prompt,
        v.usage.cached,
        v.usage.output,
    )


def verdict_of(row: Sequence[Any]) -> Verdict:
    """The verdict whose columns VERDICT are in `row`."""
    question, state, answer, mode, text, detail, rationale, evidence, confidence, left_out, *usage = row
    return Verdict(
        question=question,
        state=State(state),
        answer=answer,
        mode=Mode(mode),
        text=text,
        detail=detail,
        usage=Usage(*usage),
        rationale=rationale,
        evidence=None if evidence is None else tuple(json.loads(evidence)),
        confidence=None if confidence is None else Confidence(json.loads(confidence)),
        left_out=left_out,
    )
