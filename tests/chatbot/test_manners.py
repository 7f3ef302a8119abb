"""The pace, the repeats and the end of patience, on a clock of its own."""

from __future__ import annotations

import asyncio

import pytest

from vera_local.chatbot import ChatbotDown, ChatbotFailed, Manners
from vera_local.chatbot.manners import Breaker, Fault, Gate


class Clock:
    """A time that passes by sleeping alone."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Asked:
    """An attempt that fails with these faults first; `at` keeps the moments of the tries."""

    def __init__(self, clock: Clock, *faults: Exception) -> None:
        self._clock = clock
        self._faults = list(faults)
        self.at: list[float] = []

    async def __call__(self) -> str:
        self.at.append(self._clock.now)
        if self._faults:
            raise self._faults.pop(0)
        return "done"


def gate(clock: Clock, **manners: float) -> Gate:
    return Gate(Manners.model_validate(manners), clock, clock.sleep)


async def test_a_fault_is_tried_again_after_pauses_that_double_and_vary() -> None:
    clock = Clock()
    asked = Asked(clock, *[Fault("no")] * 4)
    assert await gate(clock, backoff=1, retries=4).ask(asked, seed=1) == "done"
    assert len(clock.slept) == 4
    assert all(0.5 * 2**n <= pause <= 1.5 * 2**n for n, pause in enumerate(clock.slept))
    assert len({pause / 2**n for n, pause in enumerate(clock.slept)}) == 4


async def test_the_seed_decides_how_pauses_vary() -> None:
    async def pauses(seed: int) -> list[float]:
        clock = Clock()
        await gate(clock).ask(Asked(clock, Fault("no"), Fault("no")), seed)
        return clock.slept

    assert await pauses(1) == await pauses(1) != await pauses(2)


@pytest.mark.parametrize(("retries", "told"), [(0, "^no$"), (2, "^no, in 3 tries$")])
async def test_after_all_tries_the_cause_is_told(retries: int, told: str) -> None:
    clock = Clock()
    asked = Asked(clock, *[Fault("no")] * 9)
    with pytest.raises(ChatbotFailed, match=told):
        await gate(clock, retries=retries).ask(asked, 1)
    assert len(asked.at) == retries + 1


async def test_a_failure_is_not_tried_again() -> None:
    clock = Clock()
    asked = Asked(clock, ChatbotFailed("refused"))
    with pytest.raises(ChatbotFailed, match=r"^refused$"):
        await gate(clock).ask(asked, 1)
    assert len(asked.at) == 1


async def test_a_wait_that_was_asked_for_holds_for_every_conversation() -> None:
    clock = Clock()
    shared = gate(clock, backoff=0)
    await shared.ask(one := Asked(clock, Fault("busy", wait=30.0)), 1)
    clock.now -= 20
    await shared.ask(other := Asked(clock), 2)
    assert one.at == [100.0, 130.0]
    assert other.at == [130.0]


async def test_a_wait_longer_than_allowed_is_a_failure() -> None:
    clock = Clock()
    with pytest.raises(ChatbotFailed, match="busy: it asks to be left alone for 301 s, longer than longest_wait"):
        await gate(clock, longest_wait=300).ask(Asked(clock, Fault("busy", wait=301.0)), 1)
    assert clock.slept == []


async def test_requests_are_as_far_apart_as_the_pace_says() -> None:
    clock = Clock()
    paced, asked = gate(clock, requests_per_minute=30), Asked(clock)
    for _ in range(4):
        await paced.ask(asked, 1)
    assert asked.at == [100.0, 102.0, 104.0, 106.0]


async def test_no_more_than_so_many_at_once() -> None:
    held = peak = 0

    async def attempt() -> None:
        nonlocal held, peak
        held += 1
        peak = max(peak, held)
        await asyncio.sleep(0)
        held -= 1

    shared = Gate(Manners(concurrency=3))
    await asyncio.gather(*(shared.ask(attempt, n) for n in range(20)))
    assert peak == 3


async def test_what_takes_too_long_is_a_fault() -> None:
    async def hang() -> None:
        await asyncio.sleep(3600)

    with pytest.raises(ChatbotFailed, match=r"no whole reply within 0\.01 s, in 2 tries"):
        await Gate(Manners(timeout=0.01, retries=1, backoff=0)).ask(hang, 1)


def test_so_many_failures_in_a_row_mean_that_it_is_down() -> None:
    breaker = Breaker(3)
    for _ in range(2):
        breaker.failed(ChatbotFailed("no"))
    breaker.replied()
    for _ in range(2):
        breaker.failed(ChatbotFailed("no"))
    with pytest.raises(ChatbotDown, match="3 conversations in a row got no reply from it, the last because it burns"):
        breaker.failed(ChatbotFailed("it burns"))
