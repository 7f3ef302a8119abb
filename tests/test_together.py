from __future__ import annotations

import asyncio

import pytest

from vera_local.together import together


async def fail(error: Exception) -> None:
    raise error


async def test_what_goes_wrong_in_a_task_is_raised_as_it_is_with_its_cause_and_ends_the_others() -> None:
    error = ValueError("odd")
    error.__cause__ = cause = KeyError("why")
    with pytest.raises(ValueError, match="odd") as raised:
        async with together() as group:
            endless = group.create_task(asyncio.Event().wait())
            group.create_task(fail(error))
            await asyncio.Event().wait()
    assert raised.value is error and raised.value.__cause__ is cause
    assert endless.cancelled() and asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_goes_wrong_in_the_block_ends_its_tasks() -> None:
    with pytest.raises(ValueError, match="here"):
        async with together() as group:
            endless = group.create_task(asyncio.Event().wait())
            raise ValueError("here")
    assert endless.cancelled()


async def test_cancelled_from_outside_it_ends_its_tasks_first() -> None:
    inside: list[asyncio.Task[bool]] = []

    async def block() -> None:
        async with together() as group:
            inside.append(group.create_task(asyncio.Event().wait()))
            await asyncio.Event().wait()

    task = asyncio.ensure_future(block())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert inside[0].cancelled()


async def test_without_a_failure_it_waits_for_all() -> None:
    async with together() as group:
        task = group.create_task(asyncio.sleep(0, "done"))
    assert task.result() == "done"
