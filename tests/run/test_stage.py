"""Jobs of a stage: however they end, nothing is held behind it. And the docket that they come from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable

import pytest

from vera_local.conversation import Ending, Head
from vera_local.engine.admission import Admission, Room
from vera_local.engine.replica import ReplicaLost
from vera_local.run.docket import Docket
from vera_local.run.progress import Meter
from vera_local.run.stage import MOVES, Held, Job, Stage

NEED: dict[Hashable, int] = {"engine": 40}


def room() -> tuple[Room, Admission[Hashable]]:
    only = Room(100, None)
    return only, Admission({"engine": [only]})


async def work_on(admission: Admission[Hashable], jobs: AsyncIterator[Job]) -> Meter:
    meter = Meter("Working", 9, 9)
    await Stage(admission, meter, lambda: None).all(jobs)
    return meter


async def waits(lease: Held) -> None:
    await asyncio.sleep(60)


async def passes(lease: Held) -> None:
    await asyncio.sleep(0)


async def fails(lease: Held) -> None:
    await asyncio.sleep(0)
    raise ValueError("a job")


async def test_jobs_that_end_make_room_for_others() -> None:
    only, admission = room()

    async def jobs() -> AsyncIterator[Job]:
        for _ in range(9):
            assert only.tokens <= 100
            yield Job(NEED, passes)

    assert (await work_on(admission, jobs())).jobs_done == 9
    assert (only.tokens, only.running) == (0, 0)


@pytest.mark.parametrize("broken", ["a job", "the jobs"])
async def test_a_failure_ends_all_at_once_and_nothing_is_held(broken: str) -> None:
    only, admission = room()

    async def jobs() -> AsyncIterator[Job]:
        yield Job(NEED, waits)
        if broken == "the jobs":
            raise ValueError(broken)
        yield Job(NEED, fails)
        # There is no room for it before another one ends.
        yield Job(NEED, passes)

    with pytest.raises(ExceptionGroup) as told:
        await asyncio.wait_for(work_on(admission, jobs()), timeout=5)
    assert str(told.value.exceptions[0]) == broken
    assert (only.tokens, only.running) == (0, 0)


async def test_a_job_that_nobody_cancelled_and_that_ends_so_is_told() -> None:
    """A task group would drop it without a word."""
    only, admission = room()

    async def dropped(lease: Held) -> None:
        other = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        other.cancel()
        await other

    with pytest.raises(ExceptionGroup) as told:
        await work_on(admission, one_by_one(Job(NEED, waits), Job(NEED, dropped)))
    assert "nobody cancelled it" in str(told.value.exceptions[0])
    assert (only.tokens, only.running) == (0, 0)


@pytest.mark.parametrize("rounds", range(6))
async def test_cancelled_at_any_moment_it_holds_nothing(rounds: int) -> None:
    """Also where a job was let in and has not begun."""
    only, admission = room()

    async def jobs() -> AsyncIterator[Job]:
        for _ in range(9):
            yield Job(NEED, waits)

    task = asyncio.create_task(work_on(admission, jobs()))
    for _ in range(rounds):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert (only.tokens, only.running) == (0, 0)
    (await asyncio.wait_for(admission.enter({"engine": 100}), timeout=1)).leave()


class Losing:
    """A job that loses so many replicas before it ends, and grows on each."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.kept: list[tuple[int, int]] = []

    async def work(self, lease: Held) -> None:
        room = lease.room("engine")
        self.kept.append((lease.replica("engine"), room.tokens))
        lease.resize("engine", room.tokens + 5)
        await asyncio.sleep(0)
        if self.left:
            self.left -= 1
            raise ReplicaLost("gone")


async def one_by_one(*jobs: Job) -> AsyncIterator[Job]:
    for job in jobs:
        yield job


async def test_a_job_whose_replica_is_lost_goes_on_elsewhere_with_all_that_it_keeps() -> None:
    rooms = [Room(100, None), Room(100, None)]
    admission, job = Admission[Hashable]({"engine": rooms}), Losing(1)

    async def lost(lease: Held) -> None:
        admission.shut("engine", lease.replica("engine"))
        await job.work(lease)

    meter = await work_on(admission, one_by_one(Job(NEED, lost)))
    assert job.kept == [(0, 40), (1, 45)]
    assert (meter.moved, meter.jobs_done, meter.in_flight) == (1, 1, 0)
    assert meter.text().endswith("0 in flight, 1 moved to other engines, 0 tokens/s")
    assert [(room.tokens, room.running) for room in rooms] == [(0, 0)] * 2


async def test_a_job_under_which_replica_after_replica_is_lost_ends_the_stage() -> None:
    only, admission = room()
    job, last = Losing(MOVES), Losing(MOVES + 1)
    assert (await work_on(admission, one_by_one(Job(NEED, job.work)))).jobs_done == 1
    with pytest.raises(ExceptionGroup) as told:
        await work_on(admission, one_by_one(Job(NEED, last.work)))
    assert type(told.value.exceptions[0]) is ReplicaLost
    assert (only.tokens, only.running) == (0, 0)


async def test_a_job_that_waits_for_another_replica_can_be_cancelled() -> None:
    only, admission = room()
    filler = await admission.enter({"engine": 50})

    async def lost(lease: Held) -> None:
        admission.shut("engine", 0)
        raise ReplicaLost("gone")

    task = asyncio.create_task(work_on(admission, one_by_one(Job(NEED, lost))))
    for _ in range(5):
        await asyncio.sleep(0)
    assert (only.tokens, only.running) == (50, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    filler.leave()
    assert (only.tokens, only.running) == (0, 0) and not admission._waiting


def head(id: str, characters: int, ending: Ending = Ending.TURNS) -> Head:
    return Head(id, "persona", 1, ending, turns=4, by_chatbot=2, characters=characters)


async def test_a_docket_gives_the_longest_that_waits_and_ends_once_it_is_closed() -> None:
    docket = Docket([head("short", 1), head("long", 9)], to_come=3)
    given = aiter(docket)
    assert [await anext(given), await anext(given), docket.size] == ["long", "short", 5]
    later = asyncio.ensure_future(anext(given))
    await asyncio.sleep(0)
    assert not later.done()
    docket.enter(head("unfit", 99, Ending.SIMULATOR))
    docket.enter(head("new", 5))
    assert (await later, docket.size) == ("new", 4)
    docket.close()
    assert docket.size == 3
    with pytest.raises(StopAsyncIteration):
        await anext(given)


async def test_a_docket_to_which_nothing_comes_is_closed() -> None:
    assert [id async for id in Docket([head("a", 1)])] == ["a"]
