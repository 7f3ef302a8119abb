"""What of one question is asked at the same time: the answer with its evidence, and the confidence in it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.judge.ahead import TALK, Counting, judge_on
from vera_local.bundle import Action, Do, Option, Question
from vera_local.engine.seam import EngineDied, InvalidRequest, Request
from vera_local.judge import Mode, State
from vera_local.judge.exhibit import exhibit
from vera_local.judge.wording import CUE, EVIDENCE

SHOWN = exhibit(TALK, 0)
NEXT = Action(Do.NEXT_QUESTION)
CLASSES = Question("1", "D", "Which?", "", (Option("Some of it", NEXT), Option("Some more", NEXT)))


def kind(request: Request) -> str:
    if request.labels:
        return "reading"
    if request.messages[-1].content == EVIDENCE:
        return "evidence"
    return "reasons" if request.pattern is None else "answer"


def replying(**replies: Any) -> Any:
    """Replies by the kind of request: what is listed for it in turn, events waited for and errors raised."""

    async def answer(request: Request) -> Any:
        standard = {"reading": "Some more", "evidence": "2", "reasons": f"Hm. {CUE}", "answer": "Some of it"}
        reply = standard[kind(request)]
        for part in replies.get(kind(request), []):
            if isinstance(part, asyncio.Event):
                await part.wait()
            elif isinstance(part, Exception):
                raise part
            else:
                reply = part
        return reply

    return answer


@pytest.mark.parametrize("mode", [Mode.DIRECT, Mode.REASON])
async def test_neither_answer_nor_evidence_waits_for_confidence(mode: Mode) -> None:
    read = asyncio.Event()
    engine = Counting(replying(reading=[read]))
    judge = judge_on(engine, mode=mode, evidence=True, confidence=True)
    task = asyncio.ensure_future(judge.ask(SHOWN, CLASSES))
    for _ in range(40):
        await asyncio.sleep(0)
    assert [kind(request) for request in engine.requests if kind(request) != "reasons"] == [
        "answer",
        "reading",
        "evidence",
    ]
    read.set()
    verdict = await task
    assert (verdict.answer, verdict.evidence) == ("Some of it", (2,)) and verdict.confidence is not None
    assert verdict.confidence.options == {"Some of it": 0.0, "Some more": 1.0}


async def test_confidence_does_not_wait_for_the_answer() -> None:
    written = asyncio.Event()
    engine = Counting(replying(answer=[written]))
    task = asyncio.ensure_future(judge_on(engine, confidence=True).ask(SHOWN, CLASSES))
    for _ in range(40):
        await asyncio.sleep(0)
    # Both options begin alike: two readings, one behind the other.
    assert [kind(request) for request in engine.requests] == ["answer", "reading", "reading"] and engine.alive == 1
    written.set()
    assert (await task).confidence is not None


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize(("reply", "state"), [("Perhaps", State.INVALID), (InvalidRequest("no"), State.ERROR)])
async def test_a_missing_answer_ends_the_reading_which_then_counts_for_nothing(
    read: bool, reply: Any, state: State
) -> None:
    """Whether it was read by then or never would be: the verdict is the same as without."""
    written = asyncio.Event()
    engine = Counting(replying(reading=[] if read else [asyncio.Event()], answer=[written, reply]))
    task = asyncio.ensure_future(judge_on(engine, evidence=True, confidence=True).ask(SHOWN, CLASSES))
    for _ in range(40):
        await asyncio.sleep(0)
    assert engine.alive == (1 if read else 2)
    written.set()
    verdict = await task
    assert verdict.state is state and engine.alive == 0
    assert verdict == await judge_on(Counting(replying(answer=[reply]))).ask(SHOWN, CLASSES)


@pytest.mark.parametrize("dying", ["answer", "reading", "evidence"])
async def test_an_engine_that_dies_at_one_ends_the_others(dying: str) -> None:
    others: dict[str, Any] = {"reading": [asyncio.Event()]} | (
        {} if dying == "evidence" else {"answer": [asyncio.Event()]}
    )
    engine = Counting(replying(**others | {dying: [EngineDied("gone")]}))
    with pytest.raises(EngineDied, match="gone"):
        await judge_on(engine, evidence=True, confidence=True).ask(SHOWN, CLASSES)
    assert engine.alive == 0 and asyncio.all_tasks() == {asyncio.current_task()}


async def test_the_usage_is_that_of_all_its_requests() -> None:
    engine = Counting(replying())
    verdict = await judge_on(engine, mode=Mode.REASON, evidence=True, confidence=True).ask(SHOWN, CLASSES)
    lengths = [await engine.count_tokens(r.messages) + len(r.begun) for r in engine.requests]
    assert len(lengths) == 5 and verdict.usage.prompt == sum(lengths)
