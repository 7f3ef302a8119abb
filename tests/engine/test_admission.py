"""Tokens in flight never exceed the budget, everybody gets in, and nothing is kept that was given back."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.engine.admission import FILL, Admission
from vera_local.engine.seam import Limits


@given(
    sizes=st.lists(st.integers(1, 120), min_size=1, max_size=40),
    jobs=st.integers(1, 8),
    unlucky=st.sets(st.integers(0, 39)),
    seed=st.integers(0, 99),
)
def test_the_budget_holds_whatever_comes_and_fails(sizes: list[int], jobs: int, unlucky: set[int], seed: int) -> None:
    """Some jobs fail or are cancelled: the sum always fits, every other job ends, and all is given back."""
    asyncio.run(_crowd(sizes, jobs, unlucky, random.Random(seed)))


async def _crowd(sizes: list[int], jobs: int, unlucky: set[int], draw: random.Random) -> None:
    admission = Admission(100, jobs)
    held: dict[int, int] = {}
    ended: set[int] = set()

    async def job(number: int, size: int) -> None:
        async with admission.hold(size):
            held[number] = size
            assert sum(held.values()) <= 100 or len(held) == 1
            assert len(held) <= jobs
            for _ in range(draw.randrange(4)):
                await asyncio.sleep(0)
            del held[number]
            if number in unlucky and draw.random() < 0.5:
                raise RuntimeError
        ended.add(number)

    tasks = [asyncio.create_task(job(n, size)) for n, size in enumerate(sizes)]
    for number in unlucky & set(range(len(tasks))):
        await asyncio.sleep(0)
        if draw.random() < 0.5:
            tasks[number].cancel()
            held.pop(number, None)
    done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), timeout=10)
    assert {n for n, result in enumerate(done) if result is None} == ended
    assert ended >= set(range(len(sizes))) - unlucky
    assert (admission._tokens, admission._running, len(admission._waiting)) == (0, 0, 0)


async def test_who_came_first_goes_first() -> None:
    admission, order = Admission(10, 10), []

    async def job(name: str, size: int) -> None:
        async with admission.hold(size):
            order.append(name)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for name, size in (("a", 6), ("large", 10), ("small", 1)):
            group.create_task(job(name, size))
    assert order == ["a", "large", "small"]


async def test_a_job_larger_than_the_cache_runs_alone() -> None:
    admission = Admission(10, 10)
    async with admission.hold(50):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_enter_and_leave(admission), timeout=0.05)
    await asyncio.wait_for(_enter_and_leave(admission), timeout=1)


async def _enter_and_leave(admission: Admission) -> None:
    async with admission.hold(1):
        pass


async def test_without_known_kv_only_the_number_counts() -> None:
    admission = Admission.to(Limits(context=10, kv_tokens=None, sequences=2))
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(admission.hold(10**9))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_enter_and_leave(admission), timeout=0.05)


def test_the_smallest_engine_decides() -> None:
    admission = Admission.to(Limits(10, 1000, 5), Limits(10, 500, 9))
    assert (admission._budget, admission._jobs) == (int(FILL * 500), 5)
