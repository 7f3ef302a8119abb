"""Engines that take turns: never over memory, every request ends, and conversations change sides together."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.engine.fake import FakeEngine
from vera_local.engine.residency import LAPS, Gate
from vera_local.engine.seam import (
    ChatMessage,
    Engine,
    EngineDied,
    EngineError,
    InvalidRequest,
    Limits,
    Reply,
    Request,
    Sampling,
)

HELLO = Request((ChatMessage("user", "hello"),), Sampling(0, 1, 5, 0))


class Memory:
    """What awake engines hold by GPU, checked whenever one takes some."""

    def __init__(self, room: Mapping[int, int]) -> None:
        self.room = room
        self.held = dict.fromkeys(room, 0)

    def take(self, takes: Mapping[int, int]) -> None:
        for gpu, count in takes.items():
            self.held[gpu] += count
            assert self.held[gpu] <= self.room[gpu], "more is awake than the memory holds"

    def give(self, takes: Mapping[int, int]) -> None:
        for gpu, count in takes.items():
            self.held[gpu] -= count


class Sleepy(FakeEngine):
    """An engine that holds memory while it is awake, and is asked only then."""

    def __init__(self, memory: Memory, takes: Mapping[int, int], seed: int = 0) -> None:
        super().__init__(lambda request: self._answered())
        self._memory = memory
        self._takes = takes
        self._draw = random.Random(seed)
        self.awake = True
        self.begun = 0
        self.answering = 0
        self.failure: Exception | None = None
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        memory.take(takes)

    async def _answered(self) -> str:
        await pause(self._draw.randrange(4))
        await self.may_answer.wait()
        return "hello"

    async def generate(self, request: Request) -> Reply:
        assert self.awake, "a sleeping engine was asked"
        self.begun += 1
        self.answering += 1
        try:
            return await super().generate(request)
        finally:
            self.answering -= 1

    async def sleep(self) -> None:
        assert self.awake and not self.answering, "an engine at work was put to sleep"
        self.awake = False
        await pause(self._draw.randrange(4))
        if self.failure is not None:
            raise self.failure
        self._memory.give(self._takes)

    async def aclose(self) -> None:
        await pause(3)
        await super().aclose()
        if self.awake:
            self._memory.give(self._takes)

    async def wake(self) -> None:
        assert not self.awake and not self.closed
        self._memory.take(self._takes)
        await pause(self._draw.randrange(4))
        if self.failure is not None:
            raise self.failure
        self.awake = True


async def pause(rounds: int) -> None:
    for _ in range(rounds):
        await asyncio.sleep(0)


async def opened(room: Mapping[int, int], *takes: Mapping[int, int]) -> tuple[Gate, list[Sleepy], list[Engine]]:
    gate, memory = Gate(room), Memory(room)
    inner: list[Sleepy] = []

    async def opener() -> Sleepy:
        inner.append(Sleepy(memory, takes[len(inner)], seed=len(inner)))
        return inner[-1]

    gated = [await gate.open(f"engine {n}", own, opener) for n, own in enumerate(takes)]
    return gate, inner, gated


TWO = ({0: 10}, {0: 6}, {0: 6})
"""A GPU for one of two engines."""

MACHINES = st.sampled_from(
    [
        ({0: 10}, ({0: 6}, {0: 6})),
        ({0: 10}, ({0: 6}, {0: 6}, {0: 10})),
        ({0: 10}, ({0: 4}, {0: 6}, {0: 5})),
        ({0: 10}, ({0: 3}, {0: 3}, {0: 3})),
        ({0: 10, 1: 10}, ({0: 6}, {1: 6}, {0: 8, 1: 8})),
        ({0: 10, 1: 10}, ({0: 6}, {0: 6}, {1: 6}, {1: 6})),
    ]
)


@given(
    machine=MACHINES,
    walks=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=8), min_size=1, max_size=12),
    cancelled=st.sets(st.integers(0, 11), max_size=4),
    seed=st.integers(0, 999),
)
def test_whatever_is_asked_every_request_ends_and_memory_holds(
    machine: tuple[Mapping[int, int], tuple[Mapping[int, int], ...]],
    walks: list[list[int]],
    cancelled: set[int],
    seed: int,
) -> None:
    """Conversations go from engine to engine; some requests fail, some conversations are given up anywhere."""
    asyncio.run(_traffic(*machine, walks, cancelled, random.Random(seed)))


async def _traffic(
    room: Mapping[int, int],
    takes: tuple[Mapping[int, int], ...],
    walks: list[list[int]],
    cancelled: set[int],
    draw: random.Random,
) -> None:
    gate, inner, gated = await opened(room, *takes)
    ended: set[int] = set()

    async def converse(number: int, walk: list[int]) -> None:
        for step in walk:
            broken = draw.random() < 0.1
            request = Request((), HELLO.sampling, pattern="x", labels=(1,)) if broken else HELLO
            try:
                await gated[step % len(gated)].generate(request)
            except InvalidRequest:
                assert broken
            await pause(draw.randrange(3))
        ended.add(number)

    tasks = [asyncio.create_task(converse(number, walk)) for number, walk in enumerate(walks)]
    for number in sorted(cancelled & set(range(len(tasks)))):
        await pause(draw.randrange(12))
        tasks[number].cancel()
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), timeout=20)
    assert [r for r in results if isinstance(r, Exception)] == []
    assert ended >= set(range(len(walks))) - cancelled
    await gate.aclose()
    assert [(m.in_flight, len(m.waiting)) for m in gate._members] == [(0, 0)] * len(takes)
    for engine in gated:
        await engine.aclose()
    assert all(engine.closed for engine in inner)


@pytest.mark.parametrize("conversations", [1, 10, 60])
async def test_conversations_change_sides_together(conversations: int) -> None:
    """Two switches for a turn of all, not for a turn of each."""
    gate, _, (simulator, chatbot) = await opened(*TWO)
    turns = 10

    async def converse() -> None:
        for _ in range(turns):
            await simulator.generate(HELLO)
            await chatbot.generate(HELLO)

    await asyncio.gather(*(converse() for _ in range(conversations)))
    assert 2 * turns - 1 <= gate.switches <= 2 * turns


async def test_what_a_conversation_asks_again_at_once_costs_no_switch() -> None:
    """Messages that are refused and written again: up to four tries, a different number in each conversation."""
    gate, _, (simulator, chatbot) = await opened(*TWO)
    turns, draw = 8, random.Random(1)

    async def converse() -> None:
        for _ in range(turns):
            for _ in range(draw.randrange(1, LAPS + 1)):
                await simulator.generate(HELLO)
                await pause(3)
            await chatbot.generate(HELLO)

    await asyncio.gather(*(converse() for _ in range(20)))
    assert gate.switches <= 2 * turns


async def test_a_judge_takes_the_whole_gpu_from_two_that_talk() -> None:
    gate, inner, (simulator, chatbot, judge) = await opened({0: 10}, {0: 5}, {0: 5}, {0: 10})
    await simulator.generate(HELLO)
    await chatbot.generate(HELLO)
    assert [engine.awake for engine in inner] == [True, True, False]
    await judge.generate(HELLO)
    assert [engine.awake for engine in inner] == [False, False, True]
    # Opened last, the judge was awake first.
    assert gate.switches == 3


async def test_the_longest_unused_engine_sleeps() -> None:
    _, inner, (first, second, third) = await opened({0: 10}, {0: 5}, {0: 5}, {0: 5})
    await third.generate(HELLO)
    await first.generate(HELLO)
    await third.generate(HELLO)
    await second.generate(HELLO)
    assert [engine.awake for engine in inner] == [False, True, True]


async def test_on_different_gpus_nobody_sleeps() -> None:
    gate, inner, engines = await opened({0: 10, 1: 10}, {0: 9}, {1: 9})
    await asyncio.gather(*(engine.generate(HELLO) for engine in engines * 5))
    assert all(engine.awake for engine in inner) and gate.switches == 0


async def test_a_flood_on_one_engine_does_not_starve_another() -> None:
    """The one at work begins a bounded number of requests once another is waited for, and no more."""
    _, (flooded, _), (busy, other) = await opened(*TWO)
    conversations, done = 6, asyncio.Event()

    async def flood() -> None:
        while not done.is_set():
            await busy.generate(HELLO)

    async def ask() -> None:
        await busy.generate(HELLO)
        before = flooded.begun
        await other.generate(HELLO)
        waited = flooded.begun - before
        # Each may be in flight, and the one who asks was, too.
        done.set()
        assert waited <= LAPS * (conversations + 1)

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        for _ in range(conversations):
            group.create_task(flood())
        group.create_task(ask())


async def test_of_two_that_wait_the_first_is_first() -> None:
    _, _, (busy, second, third) = await opened({0: 10}, {0: 10}, {0: 10}, {0: 10})
    order: list[str] = []

    async def ask(name: str, engine: Engine) -> None:
        await engine.generate(HELLO)
        order.append(name)

    # Whoever comes to an engine that others wait for is behind them.
    await asyncio.gather(*(ask(*one) for one in (("c", third), ("b", second), ("a", busy), ("b", second))))
    assert order == ["c", "b", "b", "a"]


async def test_a_request_that_is_given_up_while_it_waits_leaves_nothing_behind() -> None:
    gate, inner, (first, second) = await opened(*TWO)
    await first.generate(HELLO)
    at_work = asyncio.create_task(first.generate(HELLO))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(second.generate(HELLO))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(at_work, waiting, return_exceptions=True)
    assert waiting.cancelled()
    await pause(50)
    assert inner[0].awake and inner[1].begun == 0
    assert all(m.left is None and not m.waiting and m.in_flight == 0 for m in gate._members)


async def test_nobody_gets_ahead_on_a_gpu_that_is_waited_for() -> None:
    """One over both GPUs waits for two engines; another, which could have the first GPU sooner, came later."""
    _, inner, (over_both, later, one, two) = await opened({0: 10, 1: 10}, {0: 8, 1: 8}, {0: 6}, {0: 6}, {1: 6})
    assert [engine.awake for engine in inner] == [False, False, True, True]
    for busy in inner[2:]:
        busy.may_answer.clear()
    order: list[str] = []

    async def ask(name: str, engine: Engine) -> None:
        await engine.generate(HELLO)
        order.append(name)

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        for name, engine in (("one", one), ("two", two), ("over both", over_both), ("later", later)):
            group.create_task(ask(name, engine))
            await pause(5)
        inner[2].may_answer.set()
        await pause(100)
        assert order == ["one"]
        inner[3].may_answer.set()
    assert order == ["one", "two", "over both", "later"]


async def test_a_request_given_up_just_when_its_engine_woke_counts_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, inner, (first, second) = await opened(*TWO)
    waiting = asyncio.create_task(first.generate(HELLO))
    wake = inner[0].wake

    async def wake_and_give_up() -> None:
        await wake()
        # Ahead of the task itself, which the gate is about to let through.
        asyncio.get_running_loop().call_soon(waiting.cancel)

    monkeypatch.setattr(inner[0], "wake", wake_and_give_up)
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled() and inner[0].begun == 0
    assert gate._members[0].in_flight == 0
    assert (await asyncio.wait_for(second.generate(HELLO), timeout=5)).text == "hello"


async def test_what_was_held_back_goes_on_when_nobody_waits_any_more() -> None:
    gate, _, (first, second) = await opened(*TWO)
    await first.generate(HELLO)
    at_work = asyncio.create_task(first.generate(HELLO))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(second.generate(HELLO))
    await asyncio.sleep(0)
    held = [asyncio.create_task(first.generate(HELLO)) for _ in range(LAPS + 3)]
    await asyncio.sleep(0)
    assert len(gate._members[0].waiting) == 3
    waiting.cancel()
    await asyncio.wait_for(asyncio.gather(at_work, *held), timeout=5)


async def test_an_engine_that_does_not_wake_is_told_as_dead() -> None:
    _, inner, (first, second) = await opened(*TWO)
    inner[0].failure = RuntimeError("CUDA out of memory\nand more")
    asked = [asyncio.create_task(first.generate(HELLO)) for _ in range(3)]
    for result in await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), timeout=5):
        assert isinstance(result, EngineDied)
        assert str(result) == "engine 0 could not be woken (CUDA out of memory)"
    with pytest.raises(EngineDied, match="engine 0 could not be woken"):
        await second.generate(HELLO)


async def test_an_engine_that_does_not_sleep_is_told_as_dead() -> None:
    _, inner, (first, second) = await opened(*TWO)
    inner[1].failure = RuntimeError("stuck")
    with pytest.raises(EngineDied, match=r"engine 1 could not be put to sleep \(stuck\)"):
        await asyncio.wait_for(first.generate(HELLO), timeout=5)
    with pytest.raises(EngineDied):
        await second.generate(HELLO)


async def test_an_engine_opens_only_when_others_have_made_room() -> None:
    _, inner, _ = await opened(*TWO)
    assert [engine.awake for engine in inner] == [False, True]


async def test_one_that_cannot_be_opened_leaves_the_others_at_work() -> None:
    gate, _, (first, _) = await opened(*TWO)

    async def refuses() -> Sleepy:
        raise RuntimeError("no such model")

    with pytest.raises(RuntimeError, match="no such model"):
        await gate.open("third", {0: 3}, refuses)
    assert (await first.generate(HELLO)).text == "hello"


async def test_a_closed_engine_gives_its_memory_to_those_who_wait() -> None:
    _, inner, (first, second) = await opened(*TWO)
    closing = asyncio.create_task(second.aclose())
    assert (await asyncio.wait_for(first.generate(HELLO), timeout=5)).text == "hello"
    await closing
    assert inner[1].closed
    with pytest.raises(EngineDied, match="engine 1 was closed"):
        await second.generate(HELLO)


async def test_an_error_concerns_its_request_alone() -> None:
    _, _, (first, _) = await opened(*TWO)
    with pytest.raises(EngineError):
        await first.generate(Request((), HELLO.sampling, pattern="x", labels=(1,)))
    assert (await first.generate(HELLO)).text == "hello"


async def test_what_needs_no_memory_is_told_asleep() -> None:
    _, inner, (first, _) = await opened(*TWO)
    assert not inner[0].awake
    assert first.limits == Limits(context=100_000, kv_tokens=1_000_000, sequences=256)
    assert first.markers == ()
    assert await first.count_tokens(HELLO.messages) == 2
    assert await first.tokens("a word") == await inner[0].tokens("a word")
    assert not inner[0].awake
