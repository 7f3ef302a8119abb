"""Every job is given to one worker at a time until it is finished, however few of them are kept in memory."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from vera_local.run.cluster import backlog
from vera_local.run.cluster.backlog import Backlog
from vera_local.run.pages import Place


class Shelf:
    """A store of jobs, each there from when it came until it is finished."""

    def __init__(self) -> None:
        self.jobs: dict[str, int] = {}
        self.reads = 0

    def add(self, number: int) -> str:
        self.jobs[f"job {number}"] = number
        return f"job {number}"

    def page(self, after: int, limit: int) -> Sequence[Place]:
        self.reads += 1
        ordered = sorted(Place(number, id) for id, number in self.jobs.items())
        return [it for it in ordered if it.number > after][:limit]


def finish(waiting: Backlog, shelf: Shelf, id: str) -> None:
    # As a driver does: what is committed first is told then.
    del shelf.jobs[id]
    waiting.finish(id)


@pytest.mark.parametrize("seed", range(50))
def test_every_job_is_done_once_whichever_workers_are_lost(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(backlog, "KEPT", 5)
    monkeypatch.setattr(backlog, "PAGE", 3)
    draw, shelf, done = random.Random(seed), Shelf(), list[str]()
    waiting = Backlog(shelf.page)
    to_come = draw.sample(range(60), 60)
    for _ in range(5000):
        assert waiting.done <= (not shelf.jobs)
        worker = draw.randrange(4)
        match draw.choice(["come", "take", "take", "finish", "finish", "lost"]):
            case "come" if to_come:
                waiting.enter(shelf.add(to_come.pop()), draw.randrange(4))
            case "take":
                held = dict(waiting.in_hand)
                id = waiting.take(worker, idle=draw.random() < 0.5)
                assert id is None or (id not in held and id in shelf.jobs)
            case "finish" if waiting.in_hand:
                done.append(draw.choice([*waiting.in_hand]))
                finish(waiting, shelf, done[-1])
            case "lost" if draw.random() < 0.2:
                waiting.lost(worker)
                assert worker not in waiting.in_hand.values()
    assert sorted(done) == sorted(f"job {number}" for number in range(60))
    assert waiting.done


def test_a_worker_gets_what_its_caches_hold_and_others_only_what_they_leave() -> None:
    waiting = Backlog(lambda after, limit: [])
    for number in range(4):
        waiting.enter(f"job {number}", number % 2)
    assert waiting.take(0) == "job 2", "the newest of its own"
    assert waiting.take(2, idle=False) is None
    assert waiting.take(2, idle=True) == "job 1", "the oldest of whoever has most"


def test_a_store_that_was_read_to_its_end_is_not_read_again() -> None:
    shelf = Shelf()
    for number in range(backlog.PAGE + 7):
        shelf.add(number)
    waiting = Backlog(shelf.page)
    while (id := waiting.take(0)) is not None:
        finish(waiting, shelf, id)
    assert not shelf.jobs
    assert waiting.done
    assert shelf.reads == 2


def test_a_job_that_was_found_in_the_store_and_is_told_of_then_is_given_once() -> None:
    shelf = Shelf()
    id = shelf.add(0)
    waiting = Backlog(shelf.page)
    assert waiting.take(0) == id
    waiting.enter(id, 1)
    assert waiting.take(1) is None
    finish(waiting, shelf, id)
    assert waiting.done
