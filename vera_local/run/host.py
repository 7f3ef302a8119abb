"""Opens the engines that a stage needs and closes those it does not. Knows no conversation and no rubric."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from vera_local.engine.machine import loaded_bytes, this_machine
from vera_local.engine.openai import OpenAIEngine
from vera_local.engine.profile import EngineOptions, Profile, Source, Template
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


class Opening(NamedTuple):
    """What to open: a player's model, and the part of the GPU that is its own (None: as the profile says)."""

    player: Player
    memory_share: float | None


Opener = Callable[[Opening], Awaitable[Engine]]

FILL = 0.9
"""The part of a GPU's memory that all engines on it may take together; the rest is for CUDA itself."""


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

            return TransformersEngine.open(player.profile, locate(player.profile), log)
        # Heavy to import, and not needed where a server hosts the models.
        from vera_local.engine.vllm import VllmEngine

        return VllmEngine.open(player.profile, locate(player.profile), log, memory_share=opening.memory_share)

    return open_engine


class Host:
    """The engines that are open now. One model is loaded once, whatever roles it plays."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._open: dict[Key, Engine] = {}

    async def ready(self, players: Iterable[Player]) -> None:
        """Have exactly these players' engines open; started one after the other, since each start measures memory."""
        wanted = {key_of(player): player for player in players}
        for key in self._open.keys() - wanted.keys():
            await self._open.pop(key).aclose()
        shares = memory_shares({key: p.profile for key, p in wanted.items() if p.url is None})
        for key, player in wanted.items():
            if key not in self._open:
                self._open[key] = await self._opener(Opening(player, shares.get(key)))

    def holds(self, players: Iterable[Player]) -> bool:
        """Whether all these players' engines are open."""
        return all(key_of(player) in self._open for player in players)

    def engine(self, player: Player) -> Engine:
        """The open engine of a player."""
        return self._open[key_of(player)]

    async def aclose(self) -> None:
        """Close all engines."""
        while self._open:
            _, engine = self._open.popitem()
            await engine.aclose()


async def start(host: Host, watcher: Watcher, *players: Player) -> None:
    """Have exactly these players' engines open, and say what is waited for."""
    names = " and ".join(dict.fromkeys(p.profile.name for p in players))
    if host.holds(players):
        await host.ready(players)
        return
    served = all(p.url is not None for p in players)
    with watcher.waiting(f"Asking the server for {names}" if served else f"Starting {names} (20 s and more)"):
        await host.ready(players)


def memory_shares(profiles: Mapping[Key, Profile]) -> dict[Key, float]:
    """The part of a GPU's memory that each engine may fill, where several share one GPU; empty where none does.

    Each gets its weights and an equal part of what is left for KV caches.
    """
    machine = this_machine()
    if machine.device == "cpu" or len(profiles) < 2:
        return {}
    total = FILL * machine.memory_bytes
    weights = {key: loaded_bytes(profile) for key, profile in profiles.items()}
    rest = max(0.0, total - sum(weights.values())) / len(profiles)
    return {key: min(1.0, (size + rest) / machine.memory_bytes) for key, size in weights.items()}
