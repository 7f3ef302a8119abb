from __future__ import annotations

import asyncio

import pytest

from vera_local.engine.fake import FakeEngine
from vera_local.engine.machine import Machine
from vera_local.engine.profile import EngineOptions, Profile, PromptedRole, Role, Roles, Source, Template
from vera_local.engine.seam import Draw, Engine
from vera_local.run.host import Host, Opening
from vera_local.run.players import Player

CPU = Machine("cpu", "2 CPU cores", 100_000_000_000, 0)
GPU = Machine("cuda", "one GPU", 100_000_000_000, 1)
URL = "http://gpu-box:8000/v1"


class Openings:
    """An opener that tells the order of all that happens to its engines, and the most it opened at once."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.shares: dict[str, float | None] = {}
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
        self.shares[name] = opening.memory_share
        self.engines.append(_Told(name, self.events))
        return self.engines[-1]


class _Told(FakeEngine):
    def __init__(self, name: str, events: list[str]) -> None:
        super().__init__(lambda request: "")
        self._name = name
        self._events = events

    async def aclose(self) -> None:
        # A close that is not waited for would be told after the next opening.
        await asyncio.sleep(0)
        await super().aclose()
        self._events.append(f"close {self._name}")


def player(
    name: str, *, hub: str | None = None, url: str | None = None, temperature: float = 0.5, weight_gb: float = 1
) -> Player:
    prompted = PromptedRole(temperature=0, top_p=1, max_tokens=10)
    profile = Profile(
        name=name,
        title=name,
        licence="MIT",
        weight_gb=weight_gb,
        kv_bytes_per_token=1,
        context=4096,
        source=Source(hub=hub or f"org/{name}"),
        engine=EngineOptions(dtype="auto"),
        template=Template(system_role=True, thinking="none"),
        roles=Roles(simulator=prompted, chatbot=Role(temperature=0, top_p=1, max_tokens=10), judge=prompted),
    )
    return Player(profile, url, None, Draw(temperature, 1.0, 10))


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, CPU)


def on(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    monkeypatch.setattr("vera_local.run.host.this_machine", lambda: machine)


async def test_engines_no_longer_wanted_are_closed_before_others_open() -> None:
    opened = Openings()
    host = Host(opened)
    a, b, c = player("a"), player("b"), player("c")
    await host.ready([a, b])
    kept = host.engine(b)
    await host.ready([c, b])
    assert opened.events == ["open a", "open b", "close a", "open c"]
    assert host.engine(b) is kept
    assert not host.holds([a]) and host.holds([b, c])


async def test_players_with_the_same_model_share_one_engine() -> None:
    opened = Openings()
    host = Host(opened)
    cold, warm = player("a", temperature=0), player("a", temperature=1)
    await host.ready([cold, warm])
    assert opened.events == ["open a"]
    assert host.engine(cold) is host.engine(warm) is opened.engines[0]


@pytest.mark.parametrize(
    "other",
    [player("a", hub="elsewhere/a"), player("a", url=URL), player("b")],
    ids=["another source", "a server", "another name"],
)
async def test_players_with_different_models_have_an_engine_each(other: Player) -> None:
    opened = Openings()
    host = Host(opened)
    first = player("a")
    await host.ready([first])
    assert not host.holds([other]) and not host.holds([first, other])
    await host.ready([first, other])
    assert len(opened.engines) == 2
    assert [host.engine(first), host.engine(other)] == opened.engines


async def test_engines_open_one_after_the_other() -> None:
    opened = Openings()
    await Host(opened).ready([player("a"), player("b"), player("c")])
    assert opened.events == ["open a", "open b", "open c"]
    assert opened.peak == 1


async def test_closing_the_host_closes_all_engines() -> None:
    opened = Openings()
    host = Host(opened)
    players = [player("a"), player("b"), player("c", url=URL)]
    await host.ready(players)
    await host.aclose()
    assert [engine.closed for engine in opened.engines] == [True] * 3
    assert not any(host.holds([p]) for p in players)
    await host.aclose()
    assert sorted(opened.events[3:]) == ["close a", "close b", "close c"]


async def test_what_opened_before_another_failed_is_still_closed() -> None:
    opened = Openings()
    host = Host(opened)
    opened.refused = "b"
    with pytest.raises(RuntimeError, match="b does not start"):
        await host.ready([player("a"), player("b")])
    await host.aclose()
    assert opened.events == ["open a", "close a"]


async def test_two_models_on_a_gpu_share_what_their_weights_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, GPU)
    opened = Openings()
    await Host(opened).ready([player("a", weight_gb=16), player("b", weight_gb=24), player("c", url=URL)])
    # Of 100 GB 90 may be filled: 40 hold the weights, and each model gets half of the other 50.
    assert opened.shares == {"a": pytest.approx(0.41), "b": pytest.approx(0.49), "c": None}


async def test_models_too_large_for_a_gpu_are_left_to_the_engine_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, GPU)
    opened = Openings()
    await Host(opened).ready([player("a", weight_gb=30), player("b", weight_gb=120)])
    assert opened.shares == {"a": pytest.approx(0.3), "b": 1.0}


@pytest.mark.parametrize(
    ("machine", "players"),
    [
        (CPU, [player("a"), player("b")]),
        (GPU, [player("a")]),
        (GPU, [player("a", temperature=0), player("a", temperature=1)]),
        (GPU, [player("a"), player("b", url=URL)]),
    ],
    ids=["on a CPU", "one model", "one model in two roles", "the other on a server"],
)
async def test_a_model_that_shares_no_gpu_takes_what_its_profile_says(
    monkeypatch: pytest.MonkeyPatch, machine: Machine, players: list[Player]
) -> None:
    on(monkeypatch, machine)
    opened = Openings()
    await Host(opened).ready(players)
    assert set(opened.shares.values()) == {None}
