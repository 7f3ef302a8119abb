"""Puts a planned self-test to a judge. Knows no right answer and no card."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from vera_local.judge import Judge, Verdict
from vera_local.selftest.askings import Asking, Sitting, Variant
from vera_local.selftest.marks import Answered

Room = Callable[[int], AbstractAsyncContextManager[object]]
"""Waits until a sitting that keeps so many tokens in the KV cache may begin, and gives its place back at the end."""

Record = Callable[[Verdict], None]
"""Called with a verdict once it exists."""


async def perform(judge: Judge, planned: Sequence[Sitting], room: Room, record: Record) -> tuple[Answered, ...]:
    """All answers, in the order planned.

    Raises EngineDied (in an ExceptionGroup); every other failure is a verdict without an answer.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_sit(judge, sitting, room, record)) for sitting in planned]
    return tuple(answer for task in tasks for answer in task.result())


async def _sit(judge: Judge, sitting: Sitting, room: Room, record: Record) -> list[Answered]:
    """One question after the other, so that each finds the transcript in the prefix cache."""
    questions = [asking.question for asking in sitting.askings]
    shown = await judge.look(sitting.conversation, questions)
    answers = []
    async with room(await judge.kept(shown, questions)):
        for asking in sitting.askings:
            verdict = await _as(judge, asking).ask(shown, asking.question)
            record(verdict)
            answers.append(Answered(asking, verdict))
    return answers


def _as(judge: Judge, asking: Asking) -> Judge:
    """The judge for this asking: only plain answers are looked at for evidence and doubt; each repeat draws anew."""
    if asking.variant is Variant.PLAIN:
        return judge
    name = f"{judge.name}#{asking.detail}" if asking.variant is Variant.REPEAT else judge.name
    return replace(judge, name=name, evidence=False, confidence=False)
