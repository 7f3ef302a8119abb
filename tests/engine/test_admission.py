"""Tokens in flight never exceed the budget, everybody gets in, and nothing is kept that was given back."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.engine.admission import FILL, Admission, Lease, Room
from vera_local.engine.seam import Limits

ENGINES = "abc"
NEEDS = st.dictionaries(st.sampled_from(ENGINES), st.integers(1, 120), min_size=1)


def rooms(budget: int | None = 100, jobs: int = 8, replicas: int = 1) -> dict[str, list[Room]]:
    return {engine: [Room(budget, jobs) for _ in range(replicas)] for engine in ENGINES}


def empty(admission: Admission[str]) -> bool:
    held = [(room.tokens, room.running) for replicas in admission.rooms.values() for room in replicas]
    return set(held) == {(0, 0)} and not admission._waiting


@given(
    needs=st.lists(NEEDS, min_size=1, max_size=30),
    jobs=st.integers(1, 8),
    replicas=st.integers(1, 3),
    unlucky=st.sets(st.integers(0, 29)),
    seed=st.integers(0, 99),
)
def test_the_budget_holds_whatever_comes_and_fails(
    needs: list[dict[str, int]], jobs: int, replicas: int, unlucky: set[int], seed: int
) -> None:
    """Some jobs fail or are cancelled: the sum always fits, every other job ends, and all is given back."""
    asyncio.run(_crowd(needs, jobs, replicas, unlucky, random.Random(seed)))


async def _crowd(needs: list[dict[str, int]], jobs: int, replicas: int, unlucky: set[int], draw: random.Random) -> None:
    admission = Admission(rooms(100, jobs, replicas))
    held: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    ended: set[int] = set()

    async def job(number: int, need: Mapping[str, int]) -> None:
        async with admission.hold(need) as lease:
            at = {engine: held[engine, lease.replica(engine)] for engine in need}
            for engine, tokens in need.items():
                at[engine][number] = tokens
                assert sum(at[engine].values()) <= 100 or len(at[engine]) == 1
                assert len(at[engine]) <= jobs
                room = lease.room(engine)
                assert room.tokens <= 100 or room.running == 1
                assert room.tokens >= sum(at[engine].values())
            try:
                for _ in range(draw.randrange(4)):
                    await asyncio.sleep(0)
                if number in unlucky and draw.random() < 0.5:
                    raise RuntimeError
            finally:
                for engine in need:
                    del at[engine][number]
        ended.add(number)

    tasks = [asyncio.create_task(job(n, need)) for n, need in enumerate(needs)]
    for number in unlucky & set(range(len(tasks))):
        await asyncio.sleep(0)
        if draw.random() < 0.5:
            tasks[number].cancel()
    done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), timeout=10)
    assert {n for n, result in enumerate(done) if result is None} == ended
    assert ended >= set(range(len(needs))) - unlucky
    assert empty(admission)


@given(needs=st.lists(NEEDS, min_size=1, max_size=30), jobs=st.integers(1, 4), seed=st.integers(0, 99))
def test_nobody_is_overtaken_by_a_later_job_that_needs_an_engine_of_its_own(
    needs: list[dict[str, int]], jobs: int, seed: int
) -> None:
    order = asyncio.run(_entered(needs, rooms(100, jobs), random.Random(seed)))
    for engine in ENGINES:
        wanted = [n for n, need in enumerate(needs) if engine in need]
        assert [n for n in order if n in wanted] == wanted


async def _entered(needs: list[dict[str, int]], known: dict[str, list[Room]], draw: random.Random) -> list[int]:
    admission, order = Admission(known), []

    async def job(number: int) -> None:
        async with admission.hold(needs[number]):
            order.append(number)
            for _ in range(draw.randrange(4)):
                await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for number in range(len(needs)):
            group.create_task(job(number))
    return order


@given(
    needs=st.lists(NEEDS, min_size=1, max_size=30),
    jobs=st.integers(1, 4),
    replicas=st.integers(2, 3),
    turns=st.lists(st.tuples(st.sampled_from(ENGINES), st.integers(0, 2), st.booleans()), max_size=30),
    unlucky=st.sets(st.integers(0, 29)),
    seed=st.integers(0, 99),
)
def test_replicas_come_and_go_and_all_jobs_get_in_in_their_order(
    needs: list[dict[str, int]],
    jobs: int,
    replicas: int,
    turns: list[tuple[str, int, bool]],
    unlucky: set[int],
    seed: int,
) -> None:
    """While each engine keeps one open replica: nobody enters a shut one, the sum fits, the order holds, cancelled jobs
    leave nothing behind, and every other job ends."""
    asyncio.run(_coming_and_going(needs, Admission(rooms(100, jobs, replicas)), turns, unlucky, random.Random(seed)))


async def _coming_and_going(
    needs: list[dict[str, int]],
    admission: Admission[str],
    turns: list[tuple[str, int, bool]],
    unlucky: set[int],
    draw: random.Random,
) -> None:
    order: list[int] = []

    async def job(number: int) -> None:
        lease = await admission.enter(needs[number])
        order.append(number)
        for engine, tokens in needs[number].items():
            room = admission.rooms[engine][lease.replica(engine)]
            assert room.open or (engine, lease.replica(engine)) in shut_since
            assert room.tokens <= 100 or room.running == 1
            assert lease.needs[engine] == tokens
        try:
            for _ in range(draw.randrange(4)):
                await asyncio.sleep(0)
        finally:
            lease.leave()

    shut_since = set[tuple[str, int]]()
    tasks = [asyncio.create_task(job(n)) for n in range(len(needs))]
    for engine, replica, opens in turns:
        known = admission.rooms[engine]
        others = [room for n, room in enumerate(known) if n != replica]
        if opens and replica < len(known):
            admission.reopen(engine, replica)
        elif replica < len(known) and any(room.open for room in others):
            admission.shut(engine, replica)
            shut_since.add((engine, replica))
        await asyncio.sleep(0)
        # Whoever was let in before has had its turn by now.
        shut_since.clear()
    cancelled = {n for n in unlucky if n < len(tasks) and tasks[n].cancel()}
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), timeout=10)
    assert set(order) >= set(range(len(needs))) - cancelled
    assert [error for task in tasks if not task.cancelled() and (error := task.exception())] == []
    for engine in ENGINES:
        wanted = [n for n in order if engine in needs[n]]
        assert wanted == sorted(wanted)
    assert empty(admission)


async def test_a_shut_replica_lets_nobody_in_and_counts_what_it_holds() -> None:
    admission = Admission(rooms(100, replicas=2))
    first = await admission.enter({"a": 30})
    admission.shut("a", 0)
    later = [await admission.enter({"a": 10}) for _ in range(3)]
    assert [lease.replica("a") for lease in (first, *later)] == [0, 1, 1, 1]
    first.resize("a", 60)
    assert [room.tokens for room in admission.rooms["a"]] == [60, 30]
    first.leave()
    assert first.needs == {"a": 60}
    waits = asyncio.create_task(admission.enter({"a": 90}))
    await asyncio.sleep(0)
    assert not waits.done()
    admission.reopen("a", 0)
    (await asyncio.wait_for(waits, timeout=1)).leave()
    for lease in later:
        lease.leave()
    assert empty(admission)


async def test_a_job_of_other_engines_passes_one_that_waits() -> None:
    admission = Admission(rooms(10))
    async with admission.hold({"a": 8}):
        waits = asyncio.create_task(admission.enter({"a": 8, "b": 1}))
        await asyncio.sleep(0)
        async with asyncio.timeout(1), admission.hold({"c": 9}):
            assert not waits.done()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(admission.enter({"b": 1}), timeout=0.05)
    (await asyncio.wait_for(waits, timeout=1)).leave()
    assert empty(admission)


async def test_a_job_larger_than_the_cache_runs_alone() -> None:
    admission = Admission(rooms(10))
    async with admission.hold({"a": 50}):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(admission.enter({"a": 1}), timeout=0.05)
    async with asyncio.timeout(1), admission.hold({"a": 1}):
        pass


async def test_replicas_fill_evenly_and_a_job_keeps_its_own() -> None:
    admission = Admission(rooms(100, replicas=2))
    leases = [await admission.enter({"a": 30}) for _ in range(4)]
    assert [lease.replica("a") for lease in leases] == [0, 1, 0, 1]
    assert [room.tokens for room in admission.rooms["a"]] == [60, 60]


async def test_a_job_that_grows_keeps_others_out_until_there_is_room_again() -> None:
    admission = Admission(rooms(100))
    lease = await admission.enter({"a": 40})
    lease.resize("a", 120)
    waits = asyncio.create_task(admission.enter({"a": 10}))
    await asyncio.sleep(0)
    assert not waits.done()
    lease.resize("a", 90)
    other: Lease[str] = await asyncio.wait_for(waits, timeout=1)
    lease.leave()
    lease.resize("a", 1000)
    lease.leave()
    assert admission.rooms["a"][0].tokens == 10
    other.leave()
    assert empty(admission)


async def test_without_known_kv_only_the_number_counts() -> None:
    admission = Admission({"a": [Room.of(Limits(context=10, kv_tokens=None, sequences=2))]})
    held = [await admission.enter({"a": 10**9}) for _ in range(2)]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(admission.enter({"a": 1}), timeout=0.05)
    for lease in held:
        lease.leave()


def test_an_engine_s_room_is_most_of_its_cache() -> None:
    room = Room.of(Limits(context=10, kv_tokens=1000, sequences=5))
    assert (room.budget, room.jobs) == (int(FILL * 1000), None)
