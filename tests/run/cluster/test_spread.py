"""A run over workers gives what a run of one process gives, whichever of them are lost on the way."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.answers import at_random
from tests.run.cluster.local import Local, LocalRemote, Lose, never
from tests.run.test_side_by_side import OTHER, contents, late
from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import Engine, EngineDied, EngineLost, Limits, Request
from vera_local.errors import UserError
from vera_local.run import Opening, Plan, Watcher, manifest, run
from vera_local.run.cluster import drive
from vera_local.run.cluster.spread import spread
from vera_local.run.cluster.wire import Failure, Ready, Report
from vera_local.run.folder import prepare_folder
from vera_local.run.store import Store

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
SMALL = Limits(100_000, 40_000, 8, ridge=16)
HOW = {"personas": 8, "turns": 6, "check_personas": True, "judge": ["smollm2-135m-instruct", OTHER]}


async def spread_over(plan: Plan, gather: Local, watcher: Watcher) -> None:
    prepare_folder(plan.out)
    manifest.enter(plan)
    manifest.enter_judges(plan)
    with Store.open(plan.out) as store:
        store.begin(plan.conversations())
        await spread(plan, store, gather, watcher, simulate=True, judge=True)


def at(seed: int, times: int, most: int = 60) -> Lose:
    """Some workers are lost, each when it has written as much as the seed decides, and no more than `most`."""
    draw = random.Random(seed)
    when = {number: draw.randint(1, most) for number in range(times)}
    return lambda number, written: written >= when.get(number, 10**9)


@pytest.fixture
async def undisturbed(make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path) -> dict[str, list[Any]]:
    plan = make(out=tmp_path / "alone", **HOW)
    await run(plan, answering(at_random), watcher)
    return contents(plan)


@pytest.mark.parametrize("size", [1, 3])
async def test_the_same_results_as_of_one_process(
    make: MakePlan, answering: Answering, watcher: Watcher, undisturbed: dict[str, list[Any]], size: int
) -> None:
    plan, gather = make(**HOW), Local(answering(late(1), SMALL), size)
    await spread_over(plan, gather, watcher)
    assert contents(plan) == undisturbed
    given = Counter((task.line, task.conversation.id) for r in gather.fleets[0].started for task in r.tasks)
    assert set(given.values()) == {1}, "each job was given once"
    assert len(given) == 8 * 4
    assert all(remote.tasks for remote in gather.fleets[0].started)


@pytest.mark.parametrize("seed", range(20))
async def test_workers_lost_at_any_moment_change_nothing_in_the_end(
    make: MakePlan, answering: Answering, watcher: Watcher, undisturbed: dict[str, list[Any]], seed: int
) -> None:
    plan, gather = make(**HOW), Local(answering(late(seed), SMALL), 3, at(seed, 4))
    await spread_over(plan, gather, watcher)
    assert contents(plan) == undisturbed
    assert any(remote.gone for remote in gather.fleets[0].started)
    places = [remote.number % 3 for remote in gather.fleets[0].started if not remote.gone]
    assert len(set(places)) == len(places), "a new worker has the share of the one that was lost, and no other"


@pytest.mark.parametrize("lives", random.Random(1).sample(range(6, 30), 4))
async def test_a_worker_goes_on_with_the_engines_that_are_left_to_it(
    make: MakePlan, watcher: Watcher, undisturbed: dict[str, list[Any]], lives: int
) -> None:
    engines: list[FakeEngine] = []

    async def opener(opening: Opening) -> Engine:
        number, asked = len(engines), 0

        def answer(request: Request) -> str:
            nonlocal asked
            asked += 1
            if number == 0 and asked > lives:
                raise EngineLost("its process ended")
            return at_random(request)

        engines.append(FakeEngine(answer, SMALL))
        return engines[-1]

    plan, gather = make(**HOW, replicas=2), Local(opener, 1)
    await spread_over(plan, gather, watcher)
    assert contents(plan) == undisturbed
    assert engines[0].asked > lives and len(engines) == 3
    assert len(gather.fleets[0].started) == 1 and not gather.fleets[0].started[0].gone


async def test_too_many_lost_workers_end_the_run_and_another_goes_on(
    make: MakePlan, answering: Answering, watcher: Watcher, undisturbed: dict[str, list[Any]]
) -> None:
    def soon(number: int, written: int) -> bool:
        """The first get something done."""
        return written >= (60 if number < 2 else 1)

    plan = make(**HOW)
    with pytest.raises(EngineDied, match=rf"{2 * drive.RESTARTS + 1} workers were lost in a row"):
        await spread_over(plan, Local(answering(late(1), SMALL), 2, soon), watcher)
    kept = contents(plan)
    assert kept["messages"]
    again = Local(answering(late(2), SMALL), 2, never)
    await spread_over(plan, again, watcher)
    assert contents(plan) == undisturbed
    assert all(set(rows) <= set(undisturbed[name]) for name, rows in kept.items() if name != "endings")


async def test_what_a_user_has_to_see_to_ends_all(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    async def broken(opening: object) -> Any:
        raise UserError("model.safetensors is missing; download it")

    with pytest.raises(UserError, match=r"worker 0: model\.safetensors is missing"):
        await spread_over(make(**HOW), Local(broken, 2), watcher)


async def test_a_worker_that_ends_early_and_does_not_say_why_is_no_end_of_the_run(
    make: MakePlan, answering: Answering, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = LocalRemote.report

    async def too_early(remote: LocalRemote, pause: float) -> Report:
        return replace(await report(remote, pause), ended=True)

    monkeypatch.setattr(LocalRemote, "report", too_early)
    with pytest.raises(RuntimeError, match="every worker ended, none told why"):
        await spread_over(make(**HOW), Local(answering(at_random), 2), watcher)


async def test_judges_on_one_server_whose_shares_of_it_are_equal_stay_apart(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    """Three requests and two, shared by two workers, are one each for the first of them."""
    server = {"model": "other", "url": "http://127.0.0.1:9/v1"}
    how = {"personas": 4, "judge": [server | {"requests": 3}, server | {"requests": 2, "mode": "reason"}]}
    alone, plan = make(out=tmp_path / "alone", **how), make(**how)
    await run(alone, answering(at_random), watcher)
    await spread_over(plan, Local(answering(at_random), 2), watcher)
    assert contents(plan) == contents(alone)


async def test_a_worker_that_never_gets_room_holds_nobody_up(
    make: MakePlan, answering: Answering, watcher: Watcher, undisturbed: dict[str, list[Any]]
) -> None:
    plan, ready = make(**HOW), LocalRemote.ready

    async def of(remote: LocalRemote) -> Ready | Failure:
        if remote.number == 0:
            await asyncio.Event().wait()
        return await ready(remote)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalRemote, "ready", of)
        await spread_over(plan, Local(answering(late(1), SMALL), 2), watcher)
    assert contents(plan) == undisturbed
