"""One engine of several is lost: all that waits for it is told at once, and the others go on."""

from __future__ import annotations

import asyncio

import pytest

from vera_local.engine.fake import FakeEngine
from vera_local.engine.replica import Replica, ReplicaLost
from vera_local.engine.seam import (
    ChatMessage,
    Engine,
    EngineDied,
    EngineError,
    InvalidRequest,
    Reply,
    Request,
    Sampling,
)

HELLO = Request((ChatMessage("user", "hello"),), Sampling(0, 1, 5, 0))
FATAL = Request((ChatMessage("user", "die"),), Sampling(0, 1, 5, 0))


class Mortal(FakeEngine):
    """Dies at a fatal request; until `free` is set it answers none. Dead it counts no tokens either."""

    def __init__(self) -> None:
        super().__init__(self._answered)
        self.free = asyncio.Event()
        self.free.set()
        self.dead = False

    async def _answered(self, request: Request) -> str:
        self.dead = self.dead or request is FATAL
        if self.dead:
            raise EngineDied("it died")
        await self.free.wait()
        return "hello"

    async def tokens(self, text: str) -> tuple[int, ...]:
        if self.dead:
            raise EngineDied("it died")
        return await super().tokens(text)


class Pool:
    """Replicas of mortal engines, and what was told of them."""

    def __init__(self, size: int) -> None:
        self.engines = [Mortal() for _ in range(size)]
        self.lost: list[int] = []
        self.replicas: list[Replica] = []
        for engine in self.engines:
            self.replicas.append(Replica(engine, self.replicas, self._note))

    def _note(self, replica: Replica, died: EngineDied) -> None:
        assert str(died) == "it died"
        self.lost.append(self.replicas.index(replica))


async def test_whatever_waits_for_a_lost_engine_is_told_at_once() -> None:
    pool = Pool(2)
    pool.engines[0].free.clear()
    waiting = [asyncio.create_task(pool.replicas[0].generate(HELLO)) for _ in range(3)]
    for _ in range(3):
        await asyncio.sleep(0)
    with pytest.raises(ReplicaLost, match="it died"):
        await pool.replicas[0].generate(FATAL)
    told = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), timeout=5)
    assert [type(error) for error in told] == [ReplicaLost] * 3
    assert pool.lost == [0]
    asked = pool.engines[0].asked
    with pytest.raises(ReplicaLost):
        await pool.replicas[0].generate(HELLO)
    assert pool.engines[0].asked == asked
    assert (await pool.replicas[1].generate(HELLO)).text == "hello"


async def test_the_last_one_fails_with_its_own_error() -> None:
    pool = Pool(2)
    with pytest.raises(ReplicaLost):
        await pool.replicas[0].generate(FATAL)
    for _ in range(2):
        with pytest.raises(EngineDied) as told:
            await pool.replicas[1].generate(FATAL)
        assert type(told.value) is EngineDied
    assert pool.lost == [0] and pool.replicas[1].open


async def test_what_concerns_one_request_loses_no_engine() -> None:
    replicas: list[Replica] = []

    def fails(request: Request) -> str:
        raise InvalidRequest("no") if request is HELLO else TimeoutError("slow")

    replicas += [Replica(FakeEngine(fails), replicas, lambda replica, died: None) for _ in range(2)]
    with pytest.raises(InvalidRequest):
        await replicas[0].generate(HELLO)
    with pytest.raises(TimeoutError, match="slow"):
        await replicas[0].generate(FATAL)
    assert replicas[0].open


async def test_tokens_are_counted_by_a_sibling() -> None:
    pool = Pool(3)
    for lost in pool.replicas[:2]:
        with pytest.raises(ReplicaLost):
            await lost.generate(FATAL)
    assert len(await pool.replicas[0].tokens("one two")) == 2
    assert await pool.replicas[0].count_tokens(HELLO.messages) == 2
    # It is found to be lost by that, too.
    other = Pool(2)
    other.engines[0].dead = True
    assert len(await other.replicas[0].tokens("one two")) == 2
    assert other.lost == [0]
    pool.engines[2].dead = True
    with pytest.raises(EngineDied):
        await pool.replicas[0].tokens("one two")


async def test_opened_again_it_works_and_late_news_of_its_old_engine_do_not_count() -> None:
    pool, told = Pool(2), list[str]()
    first = pool.replicas[0]
    first.follow(lambda: told.append("shut"), lambda: told.append("open"))
    with pytest.raises(ReplicaLost):
        await first.generate(FATAL)
    first.follow(lambda: told.append("shut for the late one"), lambda: None)
    assert first.reopen(Mortal()) is pool.engines[0]
    assert (await first.generate(HELLO)).text == "hello"
    assert told == ["shut", "shut for the late one", "open"]
    assert type(first._died(pool.engines[0], EngineDied("it died"))) is ReplicaLost
    assert first.open and pool.lost == [0]


async def test_an_engine_that_fails_while_it_is_given_up_is_lost_all_the_same() -> None:
    class Rude(Mortal):
        async def generate(self, request: Request) -> Reply:
            try:
                return await super().generate(request)
            except asyncio.CancelledError:
                raise EngineDied("it died") from None

    engines: list[Engine] = [Rude(), Mortal()]
    replicas: list[Replica] = []
    replicas += [Replica(engine, replicas, lambda replica, died: None) for engine in engines]
    rude = engines[0]
    assert isinstance(rude, Rude)
    rude.free.clear()
    waiting = asyncio.create_task(replicas[0].generate(HELLO))
    for _ in range(3):
        await asyncio.sleep(0)
    with pytest.raises(ReplicaLost):
        await replicas[0].generate(FATAL)
    with pytest.raises(ReplicaLost):
        await asyncio.wait_for(waiting, timeout=5)
    assert issubclass(ReplicaLost, EngineError)
