"""Machines that come to a Ray cluster when a run has begun: those that lack something get no worker. Starts none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType

from vera_local.engine.profile import Profile
from vera_local.errors import UserError
from vera_local.run.cluster.machines import Node, looks, nodes_of
from vera_local.run.cluster.nodes import Look, must_match

NODE_ID = "ray.io/node-id"
"""The label that Ray gives each machine, with its id."""


@dataclass
class Latecomers:
    """Which machines workers can be on. `here`: what they have to have, of the models with these `profiles`; `seen`:
    ids of machines that were looked at."""

    ray: ModuleType
    here: Look
    profiles: Sequence[Profile]
    say: Callable[[str], None]
    seen: set[str]
    _refused: list[str] = field(default_factory=list)
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def labels(self) -> Mapping[str, str]:
        """What Ray is asked of a machine, so that none is taken that lacks something."""
        return {NODE_ID: f"!in({','.join(self._refused)})"} if self._refused else {}

    async def take_part(self, node: str) -> bool:
        """Whether the machine of that id has all; it is looked at where it is new."""
        if node not in self.seen:
            await self.look()
        return node not in self._refused

    async def look(self) -> None:
        """Look at each machine that is new; what one lacks is said."""
        async with self._looking:
            for node in nodes_of(self.ray):
                if node.id not in self.seen:
                    await self._look_at(node)

    async def _look_at(self, node: Node) -> None:
        try:
            found = await looks(self.ray, self.profiles, [node])
            if node.id not in found:
                return
            must_match(node.name, self.here, found[node.id])
        except UserError as error:
            self.say(f"{error}; no worker is started there")
            self._refused.append(node.id)
        self.seen.add(node.id)
