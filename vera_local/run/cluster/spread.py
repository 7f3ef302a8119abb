"""The stages of a run on a fleet of workers, each only as far as it is still missing. Knows not where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial

from vera_local.engine import attempts
from vera_local.run.cluster.dispatch import Dispatch
from vera_local.run.cluster.drive import Drive
from vera_local.run.cluster.fleet import Fleet
from vera_local.run.cluster.wire import Line
from vera_local.run.ledger import Ledger
from vera_local.run.network import LOG
from vera_local.run.plan import Plan
from vera_local.run.progress import Watcher
from vera_local.run.store import Store

Gathering = Callable[[Plan, Sequence[Line], int, Watcher], AbstractAsyncContextManager[Fleet]]
"""Makes a fleet for these lines of a plan, and at most so many jobs."""


async def spread(plan: Plan, store: Store, gather: Gathering, watcher: Watcher, *, simulate: bool, judge: bool) -> None:
    """Hold the conversations that are not held yet and rate those that are not rated yet.

    Raises UserError and EngineDied; what was finished until then is in the store.
    """
    ledger = Ledger(store)
    dispatch = Dispatch(plan, store, ledger, simulate=simulate, judge=judge)
    if dispatch.done:
        return
    with ledger:
        async with gather(plan, dispatch.open_lines, dispatch.jobs, watcher) as fleet:
            drive = Drive(dispatch, fleet, watcher.say, partial(attempts.write, plan.out / LOG))
            with dispatch.shown(watcher):
                await drive.until_done()
