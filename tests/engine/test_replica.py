"""One engine of several is lost, or fails: what waits for a lost one is told at once, and the others go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from vera_local.engine.fake import FakeEngine
from vera_local.engine.replica import FAILURES, Failing, Replica, ReplicaLost
from vera_local.engine.seam import (
    ChatMessage,
    ContextOverflow,
    Engine,
    EngineDied,
    EngineError,
    InvalidRequest,
    Refused,
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


class Sick(FakeEngine):
    """Raises `error` where it is asked for what is `bad`, and counts no tokens then."""

    def __init__(self, error: EngineError, bad: Callable[[Request], bool] = lambda request: True) -> None:
        super().__init__(self._answered)
        self.error: EngineError | None = error
        self._bad = bad

    def _answered(self, request: Request) -> str:
        if self.error is not None and self._bad(request):
            raise self.error
        return "hello"

    async def count_tokens(self, messages: Sequence[ChatMessage], *, thinking: bool = False) -> int:
        if self.error is not None:
            raise self.error
        return await super().count_tokens(messages, thinking=thinking)


def pool_of(*engines: FakeEngine, returns: bool = True) -> tuple[list[Replica], list[EngineDied]]:
    """Their replicas, and why some are lost."""
    replicas, lost = list[Replica](), list[EngineDied]()
    replicas += [Replica(it, replicas, lambda _, died: lost.append(died), returns=returns) for it in engines]
    return replicas, lost


FAULTS = [EngineError("status 500"), InvalidRequest("404: no such model")]


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_request_is_an_error_only_where_all_fail_at_it(fault: EngineError) -> None:
    poisonous = Sick(fault, lambda request: request is FATAL), Sick(EngineError("another")), FakeEngine(lambda _: "hi")
    (first, *_), lost = pool_of(*poisonous)
    assert (await first.generate(FATAL)).text == "hi"
    (first, *_), lost = pool_of(*poisonous[:2])
    for _ in range(2 * FAILURES):
        with pytest.raises(type(fault)) as told:
            await first.generate(FATAL)
        assert told.value is fault
    assert lost == []


@pytest.mark.parametrize("fault", FAULTS)
async def test_one_that_fails_again_and_again_at_what_others_answer_is_lost(fault: EngineError) -> None:
    sick, well = Sick(fault), Mortal()
    (first, second), lost = pool_of(sick, well)
    for _ in range(FAILURES - 1):
        assert (await first.generate(HELLO)).text == "hello"
    sick.error = None
    await first.generate(HELLO)
    sick.error = fault
    for _ in range(FAILURES - 1):
        await first.generate(HELLO)
    assert first.open, "a good reply begins the count anew"
    assert (await first.generate(HELLO)).text == "hello", "that one is not lost with it"
    assert not first.open and second.open
    assert [type(died) for died in lost] == [Failing] and str(fault) in str(lost[0])
    with pytest.raises(ReplicaLost):
        await first.generate(HELLO)


async def test_one_that_cannot_return_is_not_given_up_for_its_failures() -> None:
    (first, _), lost = pool_of(Sick(FAULTS[0]), Mortal(), returns=False)
    for _ in range(2 * FAILURES):
        assert (await first.generate(HELLO)).text == "hello"
    assert first.open and lost == []


@pytest.mark.parametrize("own", [ContextOverflow(5, 4), Refused("kept back")])
async def test_what_no_other_engine_would_change_is_asked_of_none(own: EngineError) -> None:
    well = Mortal()
    (first, _), lost = pool_of(Sick(own), well)
    for _ in range(2 * FAILURES):
        with pytest.raises(type(own)):
            await first.generate(HELLO)
    assert (well.asked, lost) == (0, [])


async def test_where_the_one_that_helps_is_lost_the_job_is_told_to_move() -> None:
    helper = Mortal()
    (first, second, third), _ = pool_of(Sick(FAULTS[0]), helper, Mortal())
    helper.dead = True
    with pytest.raises(ReplicaLost):
        await first.generate(HELLO)
    assert [it.open for it in (first, second, third)] == [True, False, True]
    assert (await first.generate(HELLO)).text == "hello"


async def test_whoever_tries_one_alone_sees_its_failures() -> None:
    (first, _), _ = pool_of(Sick(FAULTS[0]), Mortal())
    with pytest.raises(EngineError, match="status 500"):
        await first.alone.generate(HELLO)


async def test_tokens_are_counted_by_a_sibling_where_it_fails_to() -> None:
    (first, _), lost = pool_of(Sick(FAULTS[0]), Mortal())
    assert await first.count_tokens(HELLO.messages) == 2
    (first, _), _ = pool_of(Sick(FAULTS[0]), Sick(FAULTS[0]))
    with pytest.raises(EngineError, match="status 500"):
        await first.count_tokens(HELLO.messages)
    assert lost == []
