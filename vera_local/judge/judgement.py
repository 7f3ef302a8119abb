"""Conversation x rubric -> verdicts -> ratings, by one judge. Knows no other conversation and no store."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vera_local.bundle import DimensionRating, Rubric, Walk
from vera_local.conversation import Conversation
from vera_local.judge.ask import Judge
from vera_local.judge.verdict import Verdict

Record = Callable[[int, Verdict], None]
"""Called with the place in the path (1-based) and the verdict, once the verdict exists."""


async def judge_conversation(
    judge: Judge, rubric: Rubric, conversation: Conversation, known: Mapping[str, Verdict], record: Record
) -> tuple[DimensionRating, ...]:
    """Walk the rubric to its end. `known` verdicts, by question id, are not asked for again.

    Raises EngineDied; every other failure leaves a verdict without an answer and, by it, Unrated dimensions.
    """
    shown = await judge.look(conversation, rubric.questions)
    walk = Walk.start(rubric)
    while (question := walk.question) is not None:
        verdict = known.get(question.id)
        if verdict is None:
            verdict = await judge.ask(shown, question)
            record(len(walk.path) + 1, verdict)
        walk = walk.answer(verdict.answer)
    return walk.ratings()
