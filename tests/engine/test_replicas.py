"""Engines on several sites: which have to be there, that they are alike, and that servers come back."""

from __future__ import annotations

import asyncio

import pytest

from vera_local.engine import replicas
from vera_local.engine.fake import FakeEngine
from vera_local.engine.replica import FAILURES, ReplicaLost
from vera_local.engine.replicas import Replicas, Site
from vera_local.engine.seam import ChatMessage, Engine, EngineDied, EngineError, Limits, Request, Sampling
from vera_local.engine.server import Unreached
from vera_local.errors import UserError

HELLO = Request((ChatMessage("user", "hello"),), Sampling(0, 1, 5, 0))


class Places:
    """Sites whose engines can be killed, and the opener of each told what to do."""

    def __init__(self, size: int, *, served: bool = True) -> None:
        self.engines: list[list[FakeEngine]] = [[] for _ in range(size)]
        self.refuses: dict[int, Exception] = {}
        self.contexts = [1000] * size
        self.dead: set[FakeEngine] = set()
        self.sick: set[int] = set()
        self.hangs = False
        self.told: list[str] = []
        self.tries = 0
        self.replicas = Replicas([Site(self._opener(n), f"http://{n}/v1" if served else None) for n in range(size)],
                                 self.told.append)  # fmt: skip

    def _opener(self, place: int):  # type: ignore[no-untyped-def]
        async def open_engine() -> Engine:
            self.tries += 1
            if place in self.refuses:
                raise self.refuses[place]
            engine = FakeEngine(lambda request: self._answer(place, engine), Limits(self.contexts[place], None, 4))
            self.engines[place].append(engine)
            return engine

        return open_engine

    async def _answer(self, place: int, engine: FakeEngine) -> str:
        if self.hangs:
            await asyncio.Event().wait()
        if place in self.sick:
            raise EngineError("status 500")
        if engine in self.dead:
            raise EngineDied("the server no longer answers")
        return "hello"

    async def lose(self, place: int) -> None:
        self.dead.add(self.engines[place][-1])
        with pytest.raises(ReplicaLost):
            await self.replicas.engines[place].generate(HELLO)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "PAUSES", (0.0, 0.001))


async def test_one_engine_is_nobody_s_replica() -> None:
    places = Places(1)
    await places.replicas.open()
    assert places.replicas.engines == tuple(places.engines[0]) and places.replicas.whole
    await places.replicas.aclose()
    assert places.engines[0][0].closed and not places.replicas.whole


async def test_a_server_that_is_not_there_is_left_out_unless_it_has_to_be_there() -> None:
    places = Places(3)
    places.refuses[1] = Unreached("no server answers at http://1/v1; start it")
    with pytest.raises(Unreached, match="http://1/v1"):
        await places.replicas.open(every=True)
    await places.replicas.aclose()
    await places.replicas.open()
    assert places.told == ["no server answers at http://1/v1; start it; going on without it"]
    assert len(places.replicas.engines) == 2 and not places.replicas.whole
    # Tried again when engines are wanted the next time, and in its place in the order.
    del places.refuses[1]
    await places.replicas.open()
    assert places.replicas.whole
    await places.replicas.engines[1].generate(HELLO)
    assert len(places.engines[1][0].requests) == 1
    await places.replicas.aclose()
    assert all(engine.closed for of_one in places.engines for engine in of_one)


async def test_without_any_server_there_is_no_run() -> None:
    places = Places(2)
    places.refuses = {n: Unreached(f"no server answers at http://{n}/v1") for n in range(2)}
    with pytest.raises(Unreached, match="http://0/v1"):
        await places.replicas.open()


async def test_what_is_wrong_with_a_server_is_told_in_any_case() -> None:
    places = Places(2)
    places.refuses[1] = UserError("the server at http://1/v1 serves other, not m")
    with pytest.raises(UserError, match="serves other"):
        await places.replicas.open()
    places = Places(2)
    places.contexts[1] = 500
    with pytest.raises(
        UserError, match="http://1/v1 serves the model with a context of 500 tokens, others in its list"
    ):
        await places.replicas.open()
    assert places.engines[1][0].closed
    await places.replicas.aclose()
    assert places.engines[0][0].closed


@pytest.mark.usefixtures("at_once")
async def test_a_server_that_was_lost_comes_back() -> None:
    places = Places(2)
    await places.replicas.open()
    places.refuses[0] = Unreached("no server answers")
    before = places.tries
    await places.lose(0)
    assert places.told == ["the server no longer answers; what was under way there goes on elsewhere (1 of 2 left)"]
    async with asyncio.timeout(5):
        while places.tries < before + 3:
            await asyncio.sleep(0)
        del places.refuses[0]
        while len(places.told) == 1:
            await asyncio.sleep(0)
    assert places.told[1:] == ["the server at http://0/v1 answers again and is given conversations again"]
    assert (await places.replicas.engines[0].generate(HELLO)).text == "hello"
    await places.replicas.aclose()
    assert [engine.closed for engine in places.engines[0]] == [True, True]


@pytest.mark.usefixtures("at_once")
async def test_a_server_that_failed_comes_back_when_it_answers_what_it_failed_at() -> None:
    places = Places(2)
    await places.replicas.open()
    places.sick.add(0)
    for _ in range(FAILURES):
        assert (await places.replicas.engines[0].generate(HELLO)).text == "hello"
    (told,) = places.told
    assert told.startswith(f"the server at http://0/v1 failed at {FAILURES} requests in a row that others answered")
    assert told.endswith("so: status 500; what was under way there goes on elsewhere (1 of 2 left)")
    async with asyncio.timeout(5):
        while len(places.engines[0]) < 4 or not places.engines[0][2].closed:
            await asyncio.sleep(0)
        assert len(places.told) == 1, "it lists its model all the time"
        assert [len(engine.requests) for engine in places.engines[0][1:3]] == [1, 1], "one request each time"
        places.sick.clear()
        while len(places.told) == 1:
            await asyncio.sleep(0)
    assert places.told[1:] == ["the server at http://0/v1 answers again and is given conversations again"]
    assert (await places.replicas.engines[0].generate(HELLO)).text == "hello"
    await places.replicas.aclose()
    assert all(engine.closed for of_one in places.engines for engine in of_one)


async def test_a_trial_ends_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "PAUSES", (0.0,))
    places = Places(2)
    await places.replicas.open()
    places.sick.add(0)
    for _ in range(FAILURES):
        await places.replicas.engines[0].generate(HELLO)
    places.hangs = True
    async with asyncio.timeout(5):
        while len(places.engines[0]) == 1 or not places.engines[0][-1].requests:
            await asyncio.sleep(0)
    await places.replicas.aclose()
    assert all(engine.closed for of_one in places.engines for engine in of_one)


@pytest.mark.usefixtures("at_once")
async def test_a_server_that_comes_back_as_another_one_is_left_out() -> None:
    places = Places(2)
    await places.replicas.open()
    places.contexts[0] = 10
    await places.lose(0)
    async with asyncio.timeout(5):
        while len(places.told) == 1:
            await asyncio.sleep(0)
    assert "context of 10 tokens" in places.told[1] and places.told[1].endswith("; going on without it")
    with pytest.raises(ReplicaLost):
        await places.replicas.engines[0].generate(HELLO)
    assert places.engines[0][1].closed
    await places.replicas.aclose()


@pytest.mark.usefixtures("at_once")
async def test_an_engine_of_this_machine_stays_lost() -> None:
    places = Places(2, served=False)
    await places.replicas.open()
    await places.lose(1)
    for _ in range(20):
        await asyncio.sleep(0)
    assert (places.tries, len(places.told)) == (2, 1)
    await places.replicas.aclose()


async def test_nothing_waits_for_a_server_behind_a_run() -> None:
    places = Places(2)
    await places.replicas.open()
    await places.lose(0)
    await places.replicas.aclose()
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1
