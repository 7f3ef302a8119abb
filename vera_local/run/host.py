"""Opens the engines that a stage needs and closes those it does not. Knows no conversation and no rubric."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, cast

from vera_local.engine.closing import close_all
from vera_local.engine.machine import free_ram_bytes, this_machine
from vera_local.engine.openai import OpenAIEngine
from vera_local.engine.placement import ANYWHERE, Need, Place, Residency, arrange
from vera_local.engine.profile import EngineOptions, Source, Template
from vera_local.engine.replicas import Replicas, Site
from vera_local.engine.residency import Gate, Sleeper
from vera_local.engine.seam import Engine
from vera_local.engine.server import Address
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
    servers: tuple[Address, ...]
    engine: EngineName | None

    def __hash__(self) -> int:
        # It is asked for with every message; the other parts take long, and tell hardly any two apart.
        return hash((self.name, self.servers, self.engine))


class Opening(NamedTuple):
    """What to open: a player's model, and where: on a server, or else in a place of this machine."""

    player: Player
    place: Place = ANYWHERE
    server: Address | None = None

    @property
    def name(self) -> str:
        """The model's, and where it is one of several servers which one."""
        name = self.player.profile.name
        return name if len(self.player.servers) < 2 or self.server is None else f"{name} at {self.server.url}"


Opener = Callable[[Opening], Awaitable[Engine]]

Say = Callable[[str], None]


def key_of(player: Player) -> Key:
    """Which engine a player needs."""
    p = player.profile
    return Key(p.name, p.source, p.engine, p.template, p.context, player.servers, player.engine)


def server_openings(player: Player) -> tuple[Opening, ...]:
    """An opening on each of a player's servers."""
    return tuple(Opening(player, server=server) for server in player.servers)


def opener(log: Path) -> Opener:
    """Opens real engines; what they print goes to `log`."""

    async def open_engine(opening: Opening) -> Engine:
        player = opening.player
        if opening.server is not None:
            return await OpenAIEngine.open(player.profile, opening.server, player.key_env)
        if player.engine == "transformers":
            from vera_local.engine.hf import TransformersEngine

            return TransformersEngine.open(player.profile, locate(player.profile), log, opening.place)
        # Heavy to import, and not needed where a server hosts the models.
        from vera_local.engine.vllm import VllmEngine

        return VllmEngine.open(player.profile, locate(player.profile), log, opening.place)

    return open_engine


def unsaid(line: str) -> None:
    """Nobody listens."""


class Host:
    """The engines that are open now. One model is loaded once, whatever roles it plays, or as often as there are to be
    replicas; where several servers have it, it is open on each. `needs`: what each engine of the whole run needs of
    this machine, by what it is made of; a server's needs nothing. `say` is told of servers that are lost and come back.
    Raises UserError where the run cannot work on this machine.
    """

    def __init__(self, opener: Opener, needs: Mapping[Key, Sequence[Need]], say: Say = unsaid) -> None:
        self._opener = opener
        self._needs = {key: of_one[0] for key, of_one in needs.items()}
        self._hosted: dict[Key, Replicas] = {}
        every = [need for of_one in needs.values() for need in of_one]
        self.arrangement = arrange(every, this_machine(), free_ram_bytes())
        self._gate = Gate(self.arrangement.room)
        self._say = say

    @property
    def together(self) -> bool:
        """Whether all engines of the run are open and may work at the same time."""
        return self.arrangement.residency is Residency.TOGETHER and all(map(self._whole, self._needs))

    async def ready(self, players: Iterable[Player], *, every: bool = False) -> None:
        """Have these players' engines open; started one after the other, since each start measures memory.

        Others are closed only where they could not stay. Of several servers those that cannot be reached are left out,
        unless `every` one has to be there.
        """
        wanted = {key_of(player): player for player in players}
        if self.arrangement.residency is Residency.RELOAD:
            for key in self._hosted.keys() - wanted.keys():
                await self._hosted.pop(key).aclose()
        for key, player in wanted.items():
            if key not in self._hosted:
                self._hosted[key] = Replicas(self._sites(key, player), self._say)
            await self._hosted[key].open(every=every)

    def holds(self, players: Iterable[Player]) -> bool:
        """Whether all these players' engines are open."""
        return all(self._whole(key_of(player)) for player in players)

    def engines(self, player: Player) -> tuple[Engine, ...]:
        """The open engines of a player: one, or its replicas."""
        return self._hosted[key_of(player)].engines

    def copies(self, player: Player) -> int:
        """How many engines a player has when they are open."""
        return len(self._sites(key_of(player), player))

    def engine(self, player: Player) -> Engine:
        """The first of a player's open engines."""
        return self.engines(player)[0]

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
        hosted = [*self._hosted.values()]
        self._hosted.clear()
        await close_all([*hosted, self._gate])

    def _sites(self, key: Key, player: Player) -> tuple[Site, ...]:
        if key.servers:
            return tuple(self._site(key, opening) for opening in server_openings(player))
        places = self.arrangement.places[self._needs[key].name] if key in self._needs else (ANYWHERE,)
        return tuple(self._site(key, Opening(player, place)) for place in places)

    def _site(self, key: Key, opening: Opening) -> Site:
        url = None if opening.server is None else opening.server.url
        return Site(partial(self._gated, key, opening) if opening.place.sleeps else partial(self._opener, opening), url)

    def _whole(self, key: Key) -> bool:
        return key in self._hosted and self._hosted[key].whole

    async def _gated(self, key: Key, opening: Opening) -> Engine:
        """An engine that takes turns with others."""
        need, place = self._needs[key], opening.place
        takes = dict.fromkeys(place.gpus, need.weights_each + (place.kv_bytes or 0))
        return await self._gate.open(need.name, takes, lambda: self._sleeper(opening))

    async def _sleeper(self, opening: Opening) -> Sleeper:
        # Only such engines are placed where they are to sleep.
        return cast(Sleeper, await self._opener(opening))


async def start(host: Host, watcher: Watcher, *players: Player) -> None:
    """Have these players' engines open, and say what is waited for."""
    names = " and ".join(dict.fromkeys(p.profile.name for p in players))
    if host.holds(players):
        await host.ready(players)
        return
    served = all(p.url is not None for p in players)
    with watcher.waiting(f"Asking the server for {names}" if served else f"Starting {names} (20 s and more)"):
        await host.ready(players)
