"""Opens the engines that a stage needs and closes those it does not. Knows no conversation and no rubric."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self, cast

from vera_local.engine.machine import free_ram_bytes, this_machine
from vera_local.engine.openai import OpenAIEngine
from vera_local.engine.placement import ANYWHERE, Need, Place, Residency, arrange
from vera_local.engine.profile import EngineOptions, Source, Template
from vera_local.engine.residency import Gate, Sleeper
from vera_local.engine.seam import Engine
from vera_local.engine.source import locate
from vera_local.run.config import EngineName
from vera_local.run.players import Player
from vera_local.run.progress import Watcher


class Key(NamedTuple):
    """What an engine is made of; players with equal keys share one. Folders can share a name, so it is not enough."""

    name: str
    source: Source
    options: EngineOptions
    template: Template
    context: int
    url: str | None
    engine: EngineName | None

    def __hash__(self) -> int:
        # It is asked for with every message; the other parts take long, and tell hardly any two apart.
        return hash((self.name, self.url, self.engine))


class Opening(NamedTuple):
    """What to open: a player's model, and where."""

    player: Player
    place: Place = ANYWHERE


Opener = Callable[[Opening], Awaitable[Engine]]


def key_of(player: Player) -> Key:
    """Which engine a player needs."""
    p = player.profile
    return Key(p.name, p.source, p.engine, p.template, p.context, player.url, player.engine)


def opener(log: Path) -> Opener:
    """Opens real engines; what they print goes to `log`."""

    async def open_engine(opening: Opening) -> Engine:
        player = opening.player
        if player.url is not None:
            return await OpenAIEngine.open(player.profile, player.url, player.key_env)
        if player.engine == "transformers":
            from vera_local.engine.hf import TransformersEngine

            return TransformersEngine.open(player.profile, locate(player.profile), log, opening.place)
        # Heavy to import, and not needed where a server hosts the models.
        from vera_local.engine.vllm import VllmEngine

        return VllmEngine.open(player.profile, locate(player.profile), log, opening.place)

    return open_engine


class Host:
    """The engines that are open now. One model is loaded once, whatever roles it plays, or as often as there are to be
    replicas. `needs`: what each engine of the whole run needs of this machine, by what it is made of; a server's
    needs nothing. Raises UserError where the run cannot work on this machine.
    """

    def __init__(self, opener: Opener, needs: Mapping[Key, Sequence[Need]]) -> None:
        self._opener = opener
        self._needs = {key: of_one[0] for key, of_one in needs.items()}
        self._open: dict[Key, list[Engine]] = {}
        every = [need for of_one in needs.values() for need in of_one]
        self.arrangement = arrange(every, this_machine(), free_ram_bytes())
        self._gate = Gate(self.arrangement.room)

    @property
    def together(self) -> bool:
        """Whether all engines of the run are open and may work at the same time."""
        return self.arrangement.residency is Residency.TOGETHER and all(map(self._whole, self._needs))

    async def ready(self, players: Iterable[Player]) -> None:
        """Have these players' engines open; started one after the other, since each start measures memory.

        Others are closed only where they could not stay.
        """
        wanted = {key_of(player): player for player in players}
        if self.arrangement.residency is Residency.RELOAD:
            for key in self._open.keys() - wanted.keys():
                await self._close(key)
        for key, player in wanted.items():
            await self._open_all(key, player)

    def holds(self, players: Iterable[Player]) -> bool:
        """Whether all these players' engines are open."""
        return all(self._whole(key_of(player)) for player in players)

    def engines(self, player: Player) -> tuple[Engine, ...]:
        """The open engines of a player: one, or its replicas."""
        return tuple(self._open[key_of(player)])

    def copies(self, player: Player) -> int:
        """How many engines a player has when they are open."""
        return len(self._places(key_of(player)))

    def engine(self, player: Player) -> Engine:
        """The first of a player's open engines."""
        return self._open[key_of(player)][0]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What failed before tells more than that a lost engine cannot be closed.
        with suppress(*(() if kind is None else (Exception,))):
            await self.aclose()

    async def aclose(self) -> None:
        """Close all engines; what closing one of them raises keeps none of the others open."""
        engines = [engine for of_one in self._open.values() for engine in of_one]
        self._open.clear()
        await _close_all([*engines, self._gate])

    def _places(self, key: Key) -> tuple[Place, ...]:
        return self.arrangement.places[self._needs[key].name] if key in self._needs else (ANYWHERE,)

    def _whole(self, key: Key) -> bool:
        return len(self._open.get(key, ())) == len(self._places(key))

    async def _open_all(self, key: Key, player: Player) -> None:
        engines = self._open.setdefault(key, [])
        for place in self._places(key)[len(engines) :]:
            opening = Opening(player, place)
            engines.append(await (self._gated(key, opening) if place.sleeps else self._opener(opening)))

    async def _gated(self, key: Key, opening: Opening) -> Engine:
        """An engine that takes turns with others."""
        need, place = self._needs[key], opening.place
        takes = dict.fromkeys(place.gpus, need.weights_each + (place.kv_bytes or 0))
        return await self._gate.open(need.name, takes, lambda: self._sleeper(opening))

    async def _sleeper(self, opening: Opening) -> Sleeper:
        # Only such engines are placed where they are to sleep.
        return cast(Sleeper, await self._opener(opening))

    async def _close(self, key: Key) -> None:
        await _close_all(self._open.pop(key))


class _Closable(Protocol):
    async def aclose(self) -> None: ...


async def _close_all(things: Iterable[_Closable]) -> None:
    """Close these, the last one first; raises at the end what one of them raised."""
    async with AsyncExitStack() as closing:
        for thing in things:
            closing.push_async_callback(thing.aclose)


async def start(host: Host, watcher: Watcher, *players: Player) -> None:
    """Have these players' engines open, and say what is waited for."""
    names = " and ".join(dict.fromkeys(p.profile.name for p in players))
    if host.holds(players):
        await host.ready(players)
        return
    served = all(p.url is not None for p in players)
    with watcher.waiting(f"Asking the server for {names}" if served else f"Starting {names} (20 s and more)"):
        await host.ready(players)
