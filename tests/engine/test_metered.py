"""What is asked is counted, however it ends, and how much of it was new is told without counting tokens."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.engine.fake import FakeEngine
from vera_local.engine.metered import Busy, Metered, Tally
from vera_local.engine.seam import ChatMessage, EngineError, Finish, Reply, Request, Sampling, Usage

GREEDY = Sampling(temperature=0, top_p=1, max_tokens=100, seed=1)
COST = Usage(10, 4, 3)


class Time:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Life:
    """One request: when it begins, how long it takes and how it ends."""

    begin: int
    length: int
    end: str


LIVES = st.lists(
    st.builds(Life, st.integers(0, 30), st.integers(0, 10), st.sampled_from(["reply", "error", "cancel"])), max_size=8
)


def asked(*texts: str) -> Request:
    roles = ("user", "assistant") * len(texts)
    return Request(tuple(ChatMessage(r, t) for r, t in zip(roles, texts, strict=False)), GREEDY)  # type: ignore[arg-type]


@given(lives=LIVES)
@settings(deadline=None)
def test_whatever_overlaps_and_however_it_ends_the_counts_are_right(lives: list[Life]) -> None:
    time = Time()
    wider = Busy(time)
    tally, other = Tally(time, (wider,)), Tally(time, (wider,))
    asyncio.run(_live(lives, time, [tally, other]))
    for which, counted in enumerate((tally, other)):
        mine = [life for n, life in enumerate(lives) if n % 2 == which]
        ends = [life.end for life in mine]
        assert counted.requests == len(mine)
        assert (counted.failed, counted.aborted) == (ends.count("error"), ends.count("cancel"))
        assert counted.usage == sum([COST] * ends.count("reply"), Usage())
        assert counted.busy == len({t for life in mine for t in range(life.begin, life.begin + life.length)})
        assert counted.in_flight == 0
    assert wider.seconds == len({t for life in lives for t in range(life.begin, life.begin + life.length)})


async def _live(lives: list[Life], time: Time, tallies: list[Tally]) -> None:
    """Let the requests happen, each in turn to one of the tallies."""
    loop = asyncio.get_running_loop()
    replies = [loop.create_future() for _ in lives]
    engine = FakeEngine(lambda request: replies[request.sampling.seed])
    tasks: dict[int, asyncio.Task[Reply]] = {}
    for now in range(41):
        time.now = 100.0 + now
        for n, life in enumerate(lives):
            if life.begin == now:
                request = replace(asked("hi"), sampling=replace(GREEDY, seed=n))
                tasks[n] = asyncio.create_task(Metered(engine, tallies[n % 2]).generate(request))
        await _settle()
        for n, life in enumerate(lives):
            if life.begin + life.length == now:
                _end(life, replies[n], tasks[n])
        await _settle()
    await asyncio.gather(*tasks.values(), return_exceptions=True)


def _end(life: Life, reply: asyncio.Future[Reply], task: asyncio.Task[Reply]) -> None:
    match life.end:
        case "reply":
            reply.set_result(Reply("yes", Finish.STOP, COST))
        case "error":
            reply.set_exception(EngineError("no"))
        case _:
            task.cancel()


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_is_in_flight_counts_as_busy_up_to_now() -> None:
    time, held = Time(), asyncio.get_running_loop().create_future()
    tally = Tally(time)
    task = asyncio.create_task(Metered(FakeEngine(lambda request: held), tally).generate(asked("hi")))
    await _settle()
    time.now += 7
    assert (tally.in_flight, tally.requests, tally.busy) == (1, 1, 7)
    held.set_result("so")
    await task
    time.now += 5
    assert (tally.in_flight, tally.busy) == (0, 7)


async def test_all_else_of_an_engine_goes_through() -> None:
    engine = FakeEngine(lambda request: "so it is", markers=("<end>",))
    metered = Metered(engine, Tally())
    assert metered.limits is engine.limits
    assert metered.markers == ("<end>",)
    assert await metered.count_tokens(asked("one two").messages, thinking=True) == 4
    assert await metered.tokens("so it") == await engine.tokens("so it")
    assert metered.text(await metered.tokens("so it")) == "so it", "what the seam does not have"
    assert await metered.generate(asked("hi")) == await engine.generate(asked("hi"))
    await metered.aclose()
    assert engine.closed
    with pytest.raises(AttributeError):
        metered.nothing  # noqa: B018


async def test_whoever_waits_for_counts_is_told_of_replies_alone() -> None:
    told: list[int] = []
    tally = Tally(changed=lambda: told.append(tally.requests))

    def answer(request: Request) -> str:
        if request.messages[-1].content == "fail":
            raise EngineError("no")
        return "so"

    metered = Metered(FakeEngine(answer), tally)
    await metered.generate(asked("hi"))
    with pytest.raises(EngineError):
        await metered.generate(asked("fail"))
    assert told == [1]


class Cached(FakeEngine):
    """Keeps the tokens of every prompt and of every answer without end, and tells how many were there before."""

    def __init__(self, handler: Callable[[Request], str]) -> None:
        super().__init__(handler)
        self._beginnings: set[int] = set()
        self.computed = 0

    async def generate(self, request: Request) -> Reply:
        prompt = [word for m in request.messages for word in (f"<{m.role}>", *m.content.split())]
        keys = self._keys([*prompt, "<assistant>", *map(str, request.begun)])
        new = sum(key not in self._beginnings for key in keys)
        self._beginnings.update(keys)
        self.computed += new
        reply = await super().generate(request)
        for written in (reply.text.split(), [str(t) for t in (*request.begun, *reply.tokens)]):
            self._beginnings.update(self._keys([*prompt, "<assistant>", *written]))
        return replace(reply, usage=Usage(len(keys), len(keys) - new, reply.usage.output))

    @staticmethod
    def _keys(words: list[str]) -> list[int]:
        keys, key = [], 0
        for word in words:
            key = hash((key, word))
            keys.append(key)
        return keys


def prose(draw: random.Random, words: int) -> str:
    """Words as long as English ones."""
    return " ".join("".join(draw.choices("etaoinshrdlu", k=draw.choice((2, 3, 4, 5, 6, 9)))) for _ in range(words))


def close(tally: Tally, engine: Cached) -> bool:
    assert tally.usage.computed == engine.computed
    return abs(tally.distinct - engine.computed) <= 0.05 * engine.computed


@pytest.mark.parametrize("at_once", [False, True])
async def test_many_questions_on_shared_transcripts(at_once: bool) -> None:
    """Of a judge that reasons: each question is answered behind what it wrote before."""
    draw, tally, engine = random.Random(5), Tally(), Cached(lambda r: prose(random.Random(r.sampling.seed), 40))
    metered, system = Metered(engine, tally), ChatMessage("system", prose(draw, 150))

    async def judge(transcript: str, question: str, seed: int) -> None:
        messages = (system, ChatMessage("user", f"{transcript}\n\n{question}"))
        first = Request(messages, replace(GREEDY, seed=seed))
        reasons = await metered.generate(first)
        await metered.generate(replace(first, begun=(*reasons.tokens, 7, 8), pattern="(Yes|No)"))

    questions = [prose(draw, 60) for _ in range(20)]
    for n in range(10):
        transcript = prose(draw, 1_000)
        asking = [judge(transcript, question, 100 * n + k) for k, question in enumerate(questions)]
        if at_once:
            await asyncio.gather(*asking)
        else:
            for one in asking:
                await one
    assert tally.usage.prompt > 5 * tally.distinct, "the traffic shares most of its prompts"
    assert close(tally, engine)


async def test_growing_histories_seen_from_two_sides() -> None:
    """Of conversations that take turns, with a reminder behind the last message that the next prompt has not."""
    tally, engine = Tally(), Cached(lambda r: prose(random.Random(r.sampling.seed), 60))
    metered, draw = Metered(engine, tally), random.Random(6)
    systems = [ChatMessage("system", prose(draw, 200)), ChatMessage("system", prose(draw, 50))]
    histories: list[list[str]] = [[prose(draw, 20)] for _ in range(8)]
    for turn in range(20):
        for n, history in enumerate(histories):
            said = [*history[:-1], f"{history[-1]} {prose(random.Random(0), 15)}" if turn % 2 else history[-1]]
            roles = ["user" if (len(said) - k) % 2 else "assistant" for k in range(len(said))]
            seen = (ChatMessage(r, t) for r, t in zip(roles, said, strict=True))  # type: ignore[arg-type]
            request = Request((systems[turn % 2], *seen), replace(GREEDY, seed=100 * n + turn))
            history.append((await metered.generate(request)).text)
    assert tally.usage.prompt > 5 * tally.distinct
    assert close(tally, engine)


async def test_a_history_that_goes_on_costs_only_what_came_to_it() -> None:
    engine = FakeEngine(lambda request: "well then")
    tally = Tally()
    await Metered(engine, tally).generate(asked("one two three"))
    before = tally.distinct
    assert before == 4
    await Metered(engine, tally).generate(asked("one two three", "well then", "four five"))
    assert tally.distinct - before == pytest.approx(3, abs=1)


async def test_memory_can_be_given_back() -> None:
    tally = Tally()
    metered = Metered(FakeEngine(lambda request: "so"), tally)
    for _ in range(2):
        await metered.generate(asked("one two three"))
    assert tally.distinct == 4
    tally.forget()
    await metered.generate(asked("one two three"))
    assert tally.distinct == 8
