"""The machines of a Ray cluster, and what they have. Knows no worker."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from vera_local.engine import guard, heirs
from vera_local.engine.offline import SWITCHES
from vera_local.engine.profile import Profile
from vera_local.errors import UserError
from vera_local.run.cluster.nodes import Look, look


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster. `gpus` and `cpus`: how many it offers."""

    id: str
    name: str
    gpus: int
    cpus: int
    labels: Mapping[str, str]


def nodes_of(ray: ModuleType) -> list[Node]:
    """The machines of the cluster."""
    return [
        Node(
            id=node["NodeID"],
            name=f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']}, {node['NodeID'][:8]})",
            gpus=int(node["Resources"].get("GPU", 0)),
            cpus=int(node["Resources"].get("CPU", 0)),
            labels=dict(node.get("Labels", {})),
        )
        for node in ray.nodes()
        if node["Alive"]
    ]


async def looks(ray: ModuleType, profiles: Sequence[Profile], nodes: Sequence[Node]) -> dict[str, Look]:
    """What each machine has, by its id, without those that are gone by now; UserError, naming it, where it cannot be
    asked."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(look)

    async def of(node: Node) -> Look | None:
        here = NodeAffinitySchedulingStrategy(node.id, soft=False)
        asked = task.options(num_cpus=0, scheduling_strategy=here, runtime_env=environment(), max_retries=1)
        try:
            found: Look = await asked.remote(profiles)
        except (ray.exceptions.TaskUnschedulableError, ray.exceptions.NodeDiedError):
            # A machine that went is listed for some seconds.
            return None
        except ray.exceptions.RayError as error:
            raise UserError(
                f"{node.name} cannot take part: {first_line(error)}; install vera-local there as here"
            ) from None
        return found

    found = zip(nodes, await asyncio.gather(*map(of, nodes)), strict=True)
    return {node.id: its for node, its in found if its is not None}


def environment() -> dict[str, dict[str, str]]:
    """What a process of ours has to have before it imports anything; it has a log of its own for its attempts."""
    told = guard.as_told(log=None)
    return {"env_vars": SWITCHES | ({} if told is None else {heirs.VARIABLE: told})}


def first_line(error: BaseException) -> str:
    """What it says, without the stack that Ray adds."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".:;") if lines else type(error).__name__
