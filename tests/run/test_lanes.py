"""Runs come in one after the other, a few chatbots at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from vera_local.run import Plan
from vera_local.run.lanes import LANES, in_lanes
from vera_local.run.wanted import Left, Wanted, left_of

MakePlan = Callable[..., Plan]


def lefts(make: MakePlan, chatbots: int, seeds: int) -> list[Left]:
    return [
        left_of(Wanted(make(out=Path(f"/nowhere/{c}-{n}"), seed=n, chatbot=f"bot{c}@http://127.0.0.1:9/v1")), None)
        for c in range(chatbots)
        for n in range(seeds)
    ]


async def test_the_next_run_begins_when_the_jobs_of_the_one_before_it_were_let_in(make: MakePlan) -> None:
    coming, ended, most = set[int](), list[int](), 0
    parts = lefts(make, 1, 5)
    over = asyncio.Event()

    async def do(part: Left, all_in: asyncio.Event) -> None:
        nonlocal most
        coming.add(part.plan.config.seed)
        most = max(most, len(coming))
        await asyncio.sleep(0.001)
        coming.discard(part.plan.config.seed)
        all_in.set()
        if part is parts[-1]:
            assert ended == [], "nobody waited for the tails"
            over.set()
        await over.wait()
        ended.append(part.plan.config.seed)

    await asyncio.wait_for(in_lanes(parts, do), 10)
    assert most == 1
    assert len(ended) == 5


async def test_chatbots_come_in_side_by_side_but_not_all_at_once(make: MakePlan) -> None:
    coming, most, done = 0, 0, 0

    async def do(part: Left, all_in: asyncio.Event) -> None:
        nonlocal coming, most, done
        coming += 1
        most = max(most, coming)
        await asyncio.sleep(0.005)
        coming -= 1
        done += 1
        # Ending is enough: no more jobs come from it.

    await asyncio.wait_for(in_lanes(lefts(make, LANES + 3, 2), do), 20)
    assert (most, done) == (LANES, 2 * (LANES + 3))


async def test_what_fails_ends_all(make: MakePlan) -> None:
    async def do(part: Left, all_in: asyncio.Event) -> None:
        if part.plan.config.seed == 1:
            raise ValueError("broken")
        all_in.set()
        await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as failed:
        await asyncio.wait_for(in_lanes(lefts(make, 2, 2), do), 10)
    assert failed.value.subgroup(ValueError) is not None
