"""Tasks that end together, and those that are told to. Knows nothing of what they do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def together() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group that raises what went wrong first as it is, not within an ExceptionGroup.

    However the block is left, none of its tasks is alive behind it. What went wrong in one ends the others at once.
    """
    failed: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as several:
        failed = several.exceptions[0]
    # Raised out here, it keeps the cause that it was given.
    if failed is not None:
        raise failed


def told_to_end() -> bool:
    """Whether somebody cancels the task that asks. A CancelledError without that comes from what the task waited for,
    and a task group would drop a task that it ends without a word."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
