"""What workers make of a run that has begun elsewhere, or that something outside them fails in, is what one process
makes of it."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.answers import at_random
from tests.run.cluster.local import Local
from tests.run.cluster.test_spread import HOW, SMALL, spread_over
from tests.run.test_side_by_side import contents, late
from vera_local.chatbot import ChatbotDown
from vera_local.engine.seam import EngineDied, EngineError, Request
from vera_local.errors import UserError
from vera_local.run import Plan, Watcher, run
from vera_local.run.cluster.spread import spread
from vera_local.run.cluster.worker import Worker
from vera_local.run.store import NAME, Store

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
CHECKS = "select conversation, judge, realism, role_keeping, detail from persona_checks order by 1, 2"
ENDINGS = "select id, ending, detail from conversations order by 1"


def rows(plan: Plan, query: str) -> list[Any]:
    with closing(sqlite3.connect(plan.out / NAME)) as db:
        return db.execute(query).fetchall()


async def judged_over(plan: Plan, gather: Local, watcher: Watcher) -> None:
    with Store.open(plan.out) as store:
        await spread(plan, store, gather, watcher, simulate=False, judge=True)


async def test_personas_can_be_rated_later(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    alone, plan = make(check_personas=True, out=tmp_path / "alone"), make()
    await run(alone, answering(at_random), watcher)
    await spread_over(plan, Local(answering(at_random), 2), watcher)
    assert rows(plan, CHECKS) == []
    await judged_over(make(check_personas=True), Local(answering(at_random), 2), watcher)
    assert rows(plan, CHECKS) == rows(alone, CHECKS) != []


async def test_personas_that_the_bundle_does_not_have_are_not_rated(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make(check_personas=True)
    await run(plan, answering(at_random), watcher, judge=False)
    fewer = replace(plan, personas=plan.personas[:2])
    await judged_over(fewer, Local(answering(at_random), 2), watcher)
    assert [row[0] for row in rows(plan, CHECKS)] == sorted(f"{persona.name}-1" for persona in fewer.personas)


async def test_judging_alone_takes_back_no_ending(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    def failing(request: Request) -> str:
        if request.pattern is None and len(request.messages) > 3:
            raise EngineError("too odd")
        return at_random(request)

    plan = make()
    await run(plan, answering(failing), watcher, judge=False)
    before = rows(plan, ENDINGS)
    assert {(ending, detail) for _, ending, detail in before} == {("error", "too odd")}
    await judged_over(plan, Local(answering(at_random), 2), watcher)
    assert rows(plan, ENDINGS) == before


APART = {"simulator": "qwen3-8b", "chatbot": "qwen3-14b", "judge": "smollm2-135m-instruct"}


def opened(opener: Any) -> list[str]:
    return [opening.player.profile.name for opening in opener.openings]


async def test_where_only_judging_is_left_only_judges_are_opened(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan, opener = make(**APART), answering(at_random)
    await run(plan, answering(at_random), watcher, judge=False)
    await spread_over(plan, Local(opener, 2), watcher)
    assert opened(opener) == ["smollm2-135m-instruct"] * 2


async def test_a_worker_that_comes_when_all_conversations_were_held_opens_judges_alone(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    alone, plan, opener = make(out=tmp_path / "alone", **APART), make(**APART), answering(late(1), SMALL)
    await run(alone, answering(at_random), watcher)

    def lose(number: int, written: int) -> bool:
        return number == 0 and all(ending for _, ending, _ in rows(plan, ENDINGS))

    await spread_over(plan, Local(opener, 1, lose), watcher)
    assert sorted(opened(opener)[:3]) == sorted(APART.values())
    assert opened(opener)[3:] == ["smollm2-135m-instruct"]
    assert contents(plan) == contents(alone)


def down() -> Callable[..., str]:
    def reply(message: str, history: object) -> str:
        raise ValueError("gone")

    return reply


async def test_a_chatbot_that_is_down_ends_the_run(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    table = {"kind": "python", "factory": f"{__name__}:down", "retries": 0, "give_up_after": 3, "concurrency": 2}
    plan, gather = make(personas=20, chatbot=table), Local(answering(at_random), 2)
    with pytest.raises(ChatbotDown, match=r"^worker \d: the chatbot is down: 3 conversations in a row"):
        await spread_over(plan, gather, watcher)
    assert len(gather.fleets[0].started) == 2
    assert len([ending for _, ending, _ in rows(plan, ENDINGS) if ending is not None]) < 10


def drops() -> Callable[..., Awaitable[str]]:
    """Now and then it waits for something that was cancelled."""

    async def reply(message: str, history: object) -> str:
        if message.endswith(("1", "2")):
            raise asyncio.CancelledError
        return "hello"

    return reply


async def test_a_conversation_whose_chatbot_ends_cancelled_is_one_that_failed(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    table = {"kind": "python", "factory": f"{__name__}:drops", "remembers": False, "retries": 0}
    how = {"personas": 8, "chatbot": table}
    alone, plan = make(out=tmp_path / "alone", **how), make(**how)
    await run(alone, answering(at_random), watcher)
    async with asyncio.timeout(60):
        await spread_over(plan, Local(answering(at_random), 2), watcher)
    assert rows(plan, ENDINGS) == rows(alone, ENDINGS)
    assert contents(plan) == contents(alone)
    failed = [detail for _, ending, detail in rows(plan, ENDINGS) if ending == "chatbot"]
    assert 0 < len(failed) < 8
    assert all("CancelledError" in detail for detail in failed)


class Closes:
    """A chatbot that takes its time to end a conversation."""

    async def __call__(self, message: str, history: object) -> str:
        return "XYZZY"

    async def aclose(self) -> None:
        await asyncio.sleep(0.2)


def leaving(request: Request) -> str:
    """A persona that leaves with its second message."""
    if request.pattern is not None:
        return at_random(request)
    return "hello" if not any("XYZZY" in message.content for message in request.messages) else "bye <END OF CHAT>"


async def test_what_a_persona_left_with_is_kept_when_the_conversation_has_ended(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    """Else it would be judged, and lost with a worker, while it is still being closed."""
    chatbot = {"kind": "python", "factory": f"{__name__}:Closes", "remembers": False}
    how = {"personas": 4, "turns": 8, "earliest_end": 1, "chatbot": chatbot}
    alone, plan = make(out=tmp_path / "alone", **how), make(**how)
    await run(alone, answering(leaving), watcher)
    assert {ending for _, ending in contents(alone)["endings"]} == {"persona"}

    def lose(number: int, written: int) -> bool:
        return number == 0 and written >= 13

    gather = Local(answering(leaving, SMALL), 1, lose)
    await spread_over(plan, gather, watcher)
    assert [remote.gone for remote in gather.fleets[0].started] == [True, False]
    assert contents(plan) == contents(alone)


def full_after(commits: int) -> Callable[[Store], AbstractContextManager[None]]:
    """`Store.together` on a disk that is full after so many commits."""
    together, done = Store.together, itertools.count()

    @contextmanager
    def instead(store: Store) -> Iterator[None]:
        with together(store):
            yield
            if next(done) >= commits:
                raise sqlite3.OperationalError("database or disk is full")

    return instead


@pytest.mark.parametrize("commits", [1, 5, 12])
async def test_a_report_that_cannot_be_kept_stops_all_and_the_same_command_goes_on(
    make: MakePlan,
    answering: Answering,
    watcher: Watcher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    commits: int,
) -> None:
    alone, plan = make(out=tmp_path / "alone", **HOW), make(**HOW)
    await run(alone, answering(at_random), watcher)
    closed: list[Worker] = []
    aclose = Worker.aclose

    async def noted(worker: Worker) -> None:
        closed.append(worker)
        await aclose(worker)

    with monkeypatch.context() as patch:
        patch.setattr(Worker, "aclose", noted)
        patch.setattr(Store, "together", full_after(commits))
        gather = Local(answering(late(1), SMALL), 3)
        with pytest.raises(UserError, match="No space is left"):
            await spread_over(plan, gather, watcher)
    started = gather.fleets[0].started
    assert {id(worker) for worker in closed} == {id(remote.worker) for remote in started}
    assert all(remote.worker._work.done() for remote in started)
    await spread_over(plan, Local(answering(late(2), SMALL), 2), watcher)
    assert contents(plan) == contents(alone)
    assert rows(plan, CHECKS) == rows(alone, CHECKS)


@pytest.mark.parametrize(
    ("raised", "told"), [(KeyError("a fault of ours"), KeyError), (asyncio.CancelledError(), RuntimeError)]
)
@pytest.mark.parametrize("workers", [0, 2])
async def test_what_nobody_foresaw_is_told_whole(
    make: MakePlan,
    answering: Answering,
    watcher: Watcher,
    raised: BaseException,
    told: type[Exception],
    workers: int,
) -> None:
    """A job that ends cancelled, and that nobody cancelled, among it: it would be missing in the end."""

    def odd(request: Request) -> str:
        if any(message.content.startswith("message 0.") for message in request.messages):
            raise raised
        return at_random(request)

    plan, opener = make(), answering(odd)
    async with asyncio.timeout(60):
        with pytest.raises(ExceptionGroup) as failed:
            await (spread_over(plan, Local(opener, workers), watcher) if workers else run(plan, opener, watcher))
    assert failed.value.subgroup(told) is not None


@pytest.mark.parametrize("asked", [20, 70, 110])
async def test_a_run_goes_on_with_workers_and_without(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path, asked: int
) -> None:
    def dying(limit: int) -> Callable[[Request], str]:
        left = itertools.count(limit, -1)

        def answer(request: Request) -> str:
            if next(left) <= 0:
                raise EngineDied("gone")
            return at_random(request)

        return answer

    alone, plan = make(out=tmp_path / "alone", **HOW), make(**HOW)
    await run(alone, answering(at_random), watcher)
    with pytest.raises(EngineDied):
        await run(plan, answering(dying(asked)), watcher)
    with pytest.raises(UserError, match="No space is left"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "together", full_after(4))
        await spread_over(plan, Local(answering(late(1), SMALL), 2), watcher)
    with pytest.raises(EngineDied):
        await run(plan, answering(dying(20)), watcher)
    await spread_over(plan, Local(answering(late(2), SMALL), 3), watcher)
    assert contents(plan) == contents(alone)
    assert rows(plan, CHECKS) == rows(alone, CHECKS)
    again = answering(at_random)
    await run(plan, again, watcher)
    assert not again.engines
