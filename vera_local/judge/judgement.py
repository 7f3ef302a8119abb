"""Exhibit x rubric -> verdicts -> ratings, by one judge. Knows no other conversation and no store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vera_local.bundle import DimensionRating, Question, Rubric, Walk
from vera_local.judge.ask import Judge
from vera_local.judge.exhibit import Exhibit
from vera_local.judge.lookahead import Lookahead
from vera_local.judge.verdict import Verdict
from vera_local.together import together

Record = Callable[[int, Verdict], None]
"""Called with the place in the path (1-based) and the verdict, once the walk has come to it."""


async def judge_conversation(
    judge: Judge,
    rubric: Rubric,
    shown: Exhibit,
    known: Mapping[str, Verdict],
    record: Record,
    ahead: Lookahead | None = None,
) -> tuple[DimensionRating, ...]:
    """Walk the rubric to its end. `known` verdicts, by question id, are not asked for again.

    What is asked `ahead` changes neither what is recorded nor its order: a verdict that the walk does not come to is
    dropped, and its requests are cancelled where they still go on.
    Raises EngineDied, also where it died at a question asked ahead; every other failure leaves a verdict without an
    answer and, by it, Unrated dimensions. However it ends, no request of it goes on.
    """
    async with together() as group:
        asking = _Judgement(judge, rubric, shown, known, record, ahead or Lookahead(lambda: 0, 0), group)
        walk = await asking.walked(Walk.start(rubric))
    return walk.ratings()


@dataclass(slots=True)
class _Judgement:
    """A walk on its way, with the questions `pending` that were asked before it came to them."""

    judge: Judge
    rubric: Rubric
    shown: Exhibit
    known: Mapping[str, Verdict]
    record: Record
    ahead: Lookahead
    group: asyncio.TaskGroup
    pending: dict[str, asyncio.Task[Verdict]] = field(default_factory=dict)

    async def walked(self, walk: Walk) -> Walk:
        while (question := walk.question) is not None:
            verdict = self.known.get(question.id)
            if verdict is None:
                verdict = await self._verdict(question)
                self.record(len(walk.path) + 1, verdict)
            walk = walk.answer(verdict.answer)
            self.ahead.learn(question, verdict, walk.question)
            await self._drop_all_but(walk.reachable)
        return walk

    async def _verdict(self, question: Question) -> Verdict:
        """Ask, or take what was asked ahead; meanwhile further questions are asked ahead."""
        asked = self.pending.pop(question.id, None) or self._start(question)
        for further in self.ahead.choose(self.judge, self.rubric, question, self.known, self.pending):
            self.pending[further.id] = self._start(further)
        return await asked

    def _start(self, question: Question) -> asyncio.Task[Verdict]:
        task = self.group.create_task(self._ask(question))
        self.ahead.starting.add(task)
        task.add_done_callback(self.ahead.starting.discard)
        return task

    async def _ask(self, question: Question) -> Verdict:
        # From here to the first request to the engine nobody else has a turn.
        self.ahead.starting.discard(asyncio.current_task())
        return await self.judge.ask(self.shown, question)

    async def _drop_all_but(self, reachable: frozenset[str]) -> None:
        """Give up the questions that this walk cannot come to any more, and see their requests end."""
        lost = [self.pending.pop(id) for id in self.pending.keys() - reachable]
        for task in lost:
            task.cancel()
        if lost:
            await asyncio.wait(lost)
