"""Stages that go on at the same time: what begins when, on which replica, within which room, and with which result."""

from __future__ import annotations

import asyncio
import io
import random
import sqlite3
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import closing
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.answers import at_random, dying
from vera_local.engine.admission import FILL
from vera_local.engine.probe import SEED as PROBE
from vera_local.engine.seam import EngineDied, Limits, Request
from vera_local.run import Plan, Watcher, run
from vera_local.run.store import NAME
from vera_local.seed import derive

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
OTHER = "other@http://127.0.0.1:9/v1"
TABLES = {
    "messages": "select conversation, turn, speaker, text from messages order by 1, 2",
    "verdicts": "select conversation, judge, question, place, state, answer, evidence from verdicts order by 1, 2, 3",
    "ratings": "select conversation, judge, dimension, rating, decided_by from ratings order by 1, 2, 3",
    "endings": "select id, ending from conversations order by 1",
}


def contents(plan: Plan) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(plan.out / NAME)) as db:
        return {name: db.execute(query).fetchall() for name, query in TABLES.items()}


def late(seed: int, pause: float = 0.002) -> Callable[[Request], Awaitable[str]]:
    """The same answers, each after a pause that `seed` and the order of asking decide."""
    draw = random.Random(seed)

    async def answer(request: Request) -> str:
        await asyncio.sleep(pause * draw.random())
        return at_random(request)

    return answer


def judges(request: Request) -> bool:
    return "transcript" in request.messages[0].content


def of_run(requests: list[Request]) -> list[Request]:
    return [r for r in requests if r.sampling.seed != PROBE]


@pytest.mark.parametrize("flags", [{}, {"judge": [OTHER]}], ids=["one engine", "two engines"])
async def test_the_first_conversation_is_judged_while_others_are_held(
    make: MakePlan, answering: Answering, watcher: Watcher, flags: dict[str, Any]
) -> None:
    order: list[bool] = []

    def handler(request: Request) -> str:
        if request.sampling.seed != PROBE:
            order.append(judges(request))
        return at_random(request)

    opener = answering(handler, Limits(context=100_000, kv_tokens=None, sequences=2))
    outcome = await run(make(personas=8, **flags), opener, watcher)
    assert all(scores.conversations == 8 for scores in outcome.scores.values())
    first_judged, last_said = order.index(True), len(order) - 1 - order[::-1].index(False)
    assert first_judged < last_said - 20


async def test_what_is_not_fit_to_judge_is_counted_out_in_the_end(make: MakePlan, answering: Answering) -> None:
    """Also where it is the last to come."""

    async def handler(request: Request) -> str:
        by_persona = request.pattern is None and request.sampling.max_tokens != 300
        if by_persona and request.sampling.seed != PROBE and random.Random(request.messages[0].content).random() < 0.4:
            # The others have long been judged.
            await asyncio.sleep(0.05)
            return ""
        return at_random(request)

    seen = io.StringIO()
    plan = make(personas=12)
    await run(plan, answering(handler), Watcher(Console(file=seen)))
    rated = len({row[0] for row in contents(plan)["ratings"]})
    assert 0 < rated < 12
    assert f"Judging: {rated}/{rated} done" in seen.getvalue()


@pytest.mark.parametrize("how", [{}, {"judge": [OTHER, "smollm2-135m-instruct"], "repeats": 2}])
async def test_the_same_seed_gives_the_same_run_whatever_the_order(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher, how: dict[str, Any]
) -> None:
    runs = []
    for n, (handler, sequences) in enumerate([(at_random, 256), (late(1), 3), (late(2), 50), (late(3), 1)]):
        plan = make(out=tmp_path / f"run{n}", **how)
        await run(plan, answering(handler, Limits(100_000, None, sequences, ridge=16)), watcher)
        runs.append(contents(plan))
    assert runs[0]["ratings"]
    assert runs[1:] == runs[:1] * 3


@pytest.mark.parametrize("seed", range(6))
async def test_a_lost_engine_at_any_moment_changes_nothing_in_the_end(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher, seed: int
) -> None:
    undisturbed = make(out=tmp_path / "undisturbed", repeats=2)
    await run(undisturbed, answering(at_random), watcher)
    plan, draw, deaths = make(repeats=2), random.Random(seed), 0
    while True:
        engine = dying(draw.randrange(1, 80))
        before = contents(plan) if plan.out.exists() else None
        try:
            await run(plan, answering(engine, Limits(100_000, 1_000_000, 8, ridge=16)), watcher)
        except EngineDied:
            deaths += 1
        else:
            break
        if before:
            now = contents(plan)
            assert all(set(before[table]) <= set(now[table]) for table in ("messages", "verdicts", "ratings"))
    assert deaths
    assert contents(plan) == contents(undisturbed)


async def test_each_conversation_stays_on_one_replica_and_all_replicas_work(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make(personas=8, replicas=2)
    opener = answering(late(5), Limits(context=100_000, kv_tokens=1_000_000, sequences=4))
    await run(plan, opener, watcher)
    assert len(opener.engines) == 2
    whose = conversations(plan)
    where: defaultdict[tuple[str, bool], set[int]] = defaultdict(set)
    for replica, engine in enumerate(opener.engines):
        for request in of_run(engine.requests):
            where[whose[request.sampling.seed], judges(request)].add(replica)
    assert len(where) == 2 * 8
    assert {len(replicas) for replicas in where.values()} == {1}
    assert {replica for replicas in where.values() for replica in replicas} == {0, 1}


def conversations(plan: Plan) -> dict[int, str]:
    """Seed of each request that a run may make -> its conversation."""
    places: list[tuple[str, *tuple[int | str, ...]]] = []
    for c in plan.conversations():
        turns = range(1, plan.turns + 1)
        places += [(c.id, turn) for turn in turns] + [(c.id, turn, attempt) for turn in turns for attempt in range(4)]
        for seat, question in product(plan.judges, plan.bundle.rubric.questions):
            asked = (c.id, "judge", seat.name, question.id)
            places += [asked, (*asked, "confidence"), (*asked, "evidence")]
    return {derive(plan.config.seed, *place): place[0] for place in places}


async def test_no_more_is_judged_at_once_than_the_cache_keeps_transcripts_of(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    kv, lengths = 6000, set[int]()

    async def handler(request: Request) -> str:
        if request.pattern is None:
            by_chatbot = request.sampling.max_tokens == 300
            return f"{at_random(request)}{' word' * 250 * by_chatbot}"
        lengths.add(sum(len(m.content.split()) + 1 for m in request.messages))
        await asyncio.sleep(0.001)
        return at_random(request)

    plan = make(personas=8, judge=[OTHER], judge_evidence=False, judge_confidence=False)
    opener = answering(handler, Limits(context=100_000, kv_tokens=kv, sequences=64, block=16))
    await run(plan, opener, watcher)
    longest = max(lengths)
    assert longest > 500
    assert 1 < opener.engines[-1].peak <= FILL * kv / 500


async def test_a_conversation_is_rated_from_all_seats_of_an_engine_while_its_transcript_is_in_the_cache(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make(personas=3, judge_repeats=2, judge=["smollm2-135m-instruct"], judge_evidence=False)
    opener = answering(at_random, Limits(context=100_000, kv_tokens=None, sequences=1))
    await run(plan, opener, watcher)
    whose = conversations(plan)
    shown = [whose[r.sampling.seed] for r in of_run(opener.requests) if judges(r)]
    changes = sum(one != following for one, following in pairwise(shown))
    assert changes == 2, "a transcript was left and come back to"
