"""Engines open one after the other, once each, and stay as long as the arrangement lets them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from vera_local.engine.fake import FakeEngine
from vera_local.engine.machine import Machine
from vera_local.engine.placement import ANYWHERE, Need, Place, Residency
from vera_local.engine.profile import EngineOptions, Profile, PromptedRole, Role, Roles, Source, Template
from vera_local.engine.seam import ChatMessage, Draw, Engine, EngineLost, Request, Sampling
from vera_local.engine.server import Address
from vera_local.errors import UserError
from vera_local.run.host import Host, Key, Opening, key_of
from vera_local.run.players import Player

GB = 10**9
CPU = Machine("cpu", "2 CPU cores", 100 * GB, 0)
GPU = Machine("cuda", "one GPU", 100 * GB, 1)
URL = "http://gpu-box:8000/v1"


class Openings:
    """An opener that tells the order of all that happens to its engines, and the most it opened at once."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.places: dict[str, list[Place]] = {}
        self.engines: list[FakeEngine] = []
        self.refused = ""
        self.peak = 0
        self._opening = 0

    async def __call__(self, opening: Opening) -> Engine:
        name = opening.player.profile.name
        self._opening += 1
        self.peak = max(self.peak, self._opening)
        # Others get the chance to start now, if they may.
        await asyncio.sleep(0)
        self._opening -= 1
        if name == self.refused:
            raise RuntimeError(f"{name} does not start")
        self.events.append(f"open {name}")
        self.places.setdefault(name, []).append(opening.place)
        self.engines.append(_Told(name, self.events))
        return self.engines[-1]


class _Told(FakeEngine):
    def __init__(self, name: str, events: list[str]) -> None:
        super().__init__(lambda request: "")
        self._name = name
        self._events = events

    async def sleep(self) -> None:
        self._events.append(f"sleep {self._name}")

    async def wake(self) -> None:
        self._events.append(f"wake {self._name}")

    async def aclose(self) -> None:
        # A close that is not waited for would be told after the next opening.
        await asyncio.sleep(0)
        await super().aclose()
        self._events.append(f"close {self._name}")


def player(name: str, *, hub: str | None = None, url: str | None = None, temperature: float = 0.5) -> Player:
    prompted = PromptedRole(temperature=0, top_p=1, max_tokens=10)
    profile = Profile(
        name=name,
        title=name,
        licence="MIT",
        weight_gb=1,
        kv_bytes_per_token=1,
        context=4096,
        source=Source(hub=hub or f"org/{name}"),
        engine=EngineOptions(dtype="auto"),
        template=Template(system_role=True, thinking="none"),
        roles=Roles(simulator=prompted, chatbot=Role(temperature=0, top_p=1, max_tokens=10), judge=prompted),
    )
    return Player(profile, () if url is None else (Address(url),), None, Draw(temperature, 1.0, 10))


def need(name: str, stage: str = "talk", *, gb: int = 1, replicas: int = 1, can_sleep: bool = False) -> Need:
    return Need(name, gb * GB, 1, 4096, 1, replicas, stage, 4096, can_sleep)


def needs(
    *players: Player, stages: Sequence[str] = (), gb: int = 1, replicas: int = 1, can_sleep: bool = False
) -> Mapping[Key, list[Need]]:
    """The needs of engines of one size, each in its stage."""
    names = stages or ["talk"] * len(players)
    own = {key_of(p): p for p in players if p.url is None}
    return {key: [need(str(n), names[n], gb=gb, replicas=replicas, can_sleep=can_sleep)] for n, key in enumerate(own)}


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, CPU)


def on(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    monkeypatch.setattr("vera_local.run.host.this_machine", lambda: machine)
    monkeypatch.setattr("vera_local.run.host.free_ram_bytes", lambda: 1000 * GB)


async def test_engines_that_fit_together_stay_open_through_all_stages() -> None:
    opened, (a, b, c) = Openings(), [player(name) for name in "abc"]
    host = Host(opened, needs(a, b, c, stages=("talk", "talk", "judge:c")))
    await host.ready([a, b])
    kept = host.engine(b)
    assert not host.together
    await host.ready([c])
    assert opened.events == ["open a", "open b", "open c"]
    assert host.engine(b) is kept
    assert host.together and host.holds([a, b, c])


async def test_engines_that_do_not_fit_are_closed_before_those_of_the_next_stage_open() -> None:
    opened, (a, b, c) = Openings(), [player(name) for name in "abc"]
    host = Host(opened, needs(a, b, c, stages=("talk", "talk", "judge:c"), gb=35))
    assert host.arrangement.residency is Residency.RELOAD
    await host.ready([a, b])
    await host.ready([c])
    assert sorted(opened.events[:4]) == ["close a", "close b", "open a", "open b"]
    assert opened.events[4:] == ["open c"]
    assert not host.together and host.holds([c]) and not host.holds([a])


async def test_players_with_the_same_model_share_one_engine() -> None:
    opened, (cold, warm) = Openings(), [player("a", temperature=0), player("a", temperature=1)]
    host = Host(opened, needs(cold, warm))
    await host.ready([cold, warm])
    assert opened.events == ["open a"]
    assert host.engine(cold) is host.engine(warm) is opened.engines[0]


@pytest.mark.parametrize(
    "other",
    [player("a", hub="elsewhere/a"), player("a", url=URL), player("b")],
    ids=["another source", "a server", "another name"],
)
async def test_players_with_different_models_have_an_engine_each(other: Player) -> None:
    opened, first = Openings(), player("a")
    host = Host(opened, needs(first, other))
    await host.ready([first])
    assert not host.holds([other]) and not host.holds([first, other])
    await host.ready([first, other])
    assert len(opened.engines) == 2
    assert [host.engine(first), host.engine(other)] == opened.engines


async def test_engines_open_one_after_the_other() -> None:
    opened, players = Openings(), [player(name) for name in "abc"]
    await Host(opened, needs(*players, replicas=2)).ready(players)
    assert opened.events == ["open a", "open a", "open b", "open b", "open c", "open c"]
    assert opened.peak == 1


async def test_a_player_has_all_its_replicas_and_a_server_is_one() -> None:
    opened, (here, there) = Openings(), [player("a"), player("a", url=URL)]
    host = Host(opened, needs(here, there, replicas=3))
    await host.ready([here, there])
    for place, engine in enumerate(host.engines(here)):
        await engine.generate(HELLO)
        assert [len(one.requests) for one in opened.engines] == [1] * (place + 1) + [0] * (3 - place)
    assert host.engine(here) is host.engines(here)[0]
    assert host.engines(there) == (opened.engines[3],)
    assert host.together


async def test_replicas_have_a_gpu_each(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, Machine("cuda", "H", 100 * GB, 2))
    opened, a = Openings(), player("a")
    await Host(opened, needs(a, replicas=2)).ready([a])
    assert [place.gpus for place in opened.places["a"]] == [(0,), (1,)]


async def test_closing_the_host_closes_all_engines() -> None:
    opened, players = Openings(), [player("a"), player("b"), player("c", url=URL)]
    host = Host(opened, needs(*players))
    await host.ready(players)
    await host.aclose()
    assert [engine.closed for engine in opened.engines] == [True] * 3
    assert not any(host.holds([p]) for p in players)
    await host.aclose()
    assert sorted(opened.events[3:]) == ["close a", "close b", "close c"]


async def test_what_opened_before_another_failed_is_still_closed() -> None:
    opened, (a, b) = Openings(), [player("a"), player("b")]
    opened.refused = "b"
    host = Host(opened, needs(a, b))
    with pytest.raises(RuntimeError, match="b does not start"):
        await host.ready([a, b])
    await host.aclose()
    assert opened.events == ["open a", "close a"]


async def test_an_engine_that_cannot_be_closed_keeps_no_other_one_open() -> None:
    opened, players = Openings(), [player(name) for name in "abc"]
    host = Host(opened, needs(*players))
    await host.ready(players)
    opened.engines[1].aclose = _refuses  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="cannot be closed"):
        await host.aclose()
    assert [engine.closed for engine in opened.engines] == [True, False, True]


async def test_what_failed_before_closing_is_what_is_told() -> None:
    opened, a = Openings(), player("a")
    with pytest.raises(EngineLost):
        async with Host(opened, needs(a)) as host:
            await host.ready([a])
            opened.engines[0].aclose = _refuses  # type: ignore[method-assign]
            raise EngineLost("vLLM's engine process ended")


async def _refuses() -> None:
    raise RuntimeError("it cannot be closed")


@pytest.mark.parametrize("machine", [CPU, GPU], ids=["on a CPU", "on a GPU"])
async def test_an_engine_alone_takes_what_its_profile_says(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    on(monkeypatch, machine)
    opened, (a, served) = Openings(), [player("a"), player("b", url=URL)]
    await Host(opened, needs(a, served)).ready([a, served])
    assert opened.places["a"][0].kv_bytes is None
    assert opened.places["b"] == [ANYWHERE]


HELLO = Request((ChatMessage("user", "hello"),), Sampling(0, 1, 5, 0))


async def test_engines_of_a_later_stage_open_when_those_of_the_first_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, GPU)
    opened, (a, b, c) = Openings(), [player(name) for name in "abc"]
    host = Host(opened, needs(a, b, c, stages=("talk", "talk", "judge:c"), gb=35, can_sleep=True))
    assert host.arrangement.residency is Residency.STAGES
    await host.ready([a, b])
    await asyncio.gather(*(host.engine(p).generate(HELLO) for p in (a, b)))
    assert opened.events == ["open a", "open b"]
    await host.ready([c])
    await host.engine(c).generate(HELLO)
    assert sorted(opened.events[2:4]) == ["sleep a", "sleep b"] and opened.events[4:] == ["open c"]
    assert host.holds([a, b, c]) and not host.together
    assert all(place.sleeps for of_one in opened.places.values() for place in of_one)
    # Back again, and nothing is loaded twice.
    await host.ready([a, b])
    await asyncio.gather(*(host.engine(p).generate(HELLO) for p in (a, b)))
    assert sorted(opened.events[5:]) == ["sleep c", "wake a", "wake b"]
    await host.aclose()
    assert all(engine.closed for engine in opened.engines)


async def test_two_that_talk_and_do_not_fit_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, GPU)
    opened, (a, b) = Openings(), [player(name) for name in "ab"]
    host = Host(opened, needs(a, b, gb=60, can_sleep=True))
    assert host.arrangement.residency is Residency.TURNS
    await host.ready([a, b])

    async def converse() -> None:
        for _ in range(2):
            await host.engine(a).generate(HELLO)
            await host.engine(b).generate(HELLO)

    await asyncio.gather(*(converse() for _ in range(8)))
    assert opened.events == [
        "open a", "sleep a", "open b", *["sleep b", "wake a", "sleep a", "wake b"] * 2
    ]  # fmt: skip
    assert not host.together
    await host.aclose()


async def test_what_cannot_work_is_told_before_anything_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, GPU)
    opened, a = Openings(), player("a")
    with pytest.raises(UserError, match="needs 120"):
        Host(opened, needs(a, gb=120))
    with pytest.raises(UserError, match="2 engines of 0 need 2 GPUs"):
        Host(opened, needs(a, replicas=2))
    assert opened.events == []


async def test_sleeping_engines_must_fit_the_free_host_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, GPU)
    monkeypatch.setattr("vera_local.run.host.free_ram_bytes", lambda: 20 * GB)
    a, b = player("a"), player("b")
    with pytest.raises(UserError, match=r"120\.0 GB of host memory, of which 20\.0 GB are free"):
        Host(Openings(), needs(a, b, gb=60, can_sleep=True))
