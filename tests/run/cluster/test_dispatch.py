"""Whom the driver gives jobs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from vera_local.conversation import Ending
from vera_local.run import Plan, manifest
from vera_local.run.cluster.dispatch import Dispatch
from vera_local.run.cluster.wire import TALK, Done, Report, Written
from vera_local.run.folder import prepare_folder
from vera_local.run.ledger import Ledger
from vera_local.run.store import Store

MakePlan = Callable[..., Plan]
MANY, SOME = Report(wants={TALK: 9}), Report(wants={TALK: 2}, starved=frozenset({TALK}))


@pytest.fixture
def dispatch(make: MakePlan) -> Iterator[Dispatch]:
    """Six conversations for three workers."""
    plan = make(personas=6)
    prepare_folder(plan.out)
    manifest.enter(plan)
    with Store.open(plan.out) as store:
        store.begin(plan.conversations())
        with Ledger(store) as ledger:
            dispatch = Dispatch(plan, store, ledger, simulate=True, judge=False)
            for worker in range(3):
                dispatch.join(worker, remembers=False)
            yield dispatch


def given(dispatch: Dispatch, worker: int, report: Report) -> int:
    dispatch.enter(worker, report)
    return len(dispatch.take(worker))


def test_the_last_jobs_are_for_workers_that_would_begin_them_at_once(dispatch: Dispatch) -> None:
    assert given(dispatch, 0, MANY) == 3, "as many are left then as there are workers"
    assert given(dispatch, 1, MANY) == 0
    assert given(dispatch, 2, SOME) == 1, "it waits for one, and may have others when it waits again"
    assert given(dispatch, 1, SOME) == 1
    assert given(dispatch, 2, SOME) == 1
    assert given(dispatch, 1, SOME) == 0


def test_jobs_of_a_lost_worker_are_for_those_that_wait(dispatch: Dispatch) -> None:
    assert given(dispatch, 0, MANY) == 3
    for _ in range(3):
        given(dispatch, 1, SOME)
    assert given(dispatch, 2, SOME) == 0
    dispatch.lost(0)
    assert len(dispatch.take(2)) == 1
    assert [given(dispatch, worker, SOME) for worker in (1, 2)] == [1, 1]


def test_it_is_done_when_every_job_is(dispatch: Dispatch) -> None:
    ids: list[str] = []
    while len(ids) < 6:
        dispatch.enter(0, SOME)
        ids += [task.conversation.id for task in dispatch.take(0)]
    assert not dispatch.done
    for id in ids:
        ended = Written("end", (id, Ending.TURNS, ""))
        dispatch.enter(0, Report(written=(ended,), done=(Done(TALK, id),)))
    assert dispatch.done
