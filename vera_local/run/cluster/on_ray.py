"""Workers as actors of a Ray cluster: how they are started, reached and lost. Knows not what they do."""

from __future__ import annotations

import asyncio
import math
import os
import platform
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from vera_local.errors import UserError
from vera_local.run import manifest
from vera_local.run.cluster.fleet import WorkerLost
from vera_local.run.cluster.joining import connected, imported
from vera_local.run.cluster.keys import keys_of
from vera_local.run.cluster.latecomers import Latecomers
from vera_local.run.cluster.machines import Node, environment, first_line, looks, nodes_of
from vera_local.run.cluster.nodes import gpus_each, hosted, labels_of, look, must_match
from vera_local.run.cluster.scratch import new_folder
from vera_local.run.cluster.shares import fewer_told, most_workers, share_of
from vera_local.run.cluster.wire import TALK, Failure, Line, Ready, Report, Task
from vera_local.run.cluster.worker import Worker
from vera_local.run.folder import ENGINE_LOG
from vera_local.run.host import Opener, opener
from vera_local.run.network import LOG
from vera_local.run.plan import Plan
from vera_local.run.progress import Watcher

T = TypeVar("T")

ROOM_SECONDS = 60.0
"""Time for the cluster to start a process; it takes longer only where others have what that needs."""

STOP_SECONDS = 60.0
"""Time for a worker to close its engines before it is killed."""

MakeOpener = Callable[[Path], Opener]


class Actor:
    """What runs in an actor's process: a worker, and a folder of its own for what its engines print. `keys`: variables
    that it has to have, and that Ray would log if they were given with its environment. `place`: the folder that its
    driver is in, from which paths of the config go, where this machine has it."""

    def __init__(
        self,
        plan: Plan,
        lines: Sequence[Line],
        make_opener: MakeOpener,
        keys: Mapping[str, str],
        cpus: int,
        place: Path,
    ) -> None:
        os.environ.update(keys)
        if place.is_dir():
            os.chdir(place)
        if cpus < (os.cpu_count() or 1):
            # Else vLLM's threads would be bound to all cores, which other workers have a part of.
            os.environ |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": str(cpus)}
        self._plan, self._lines, self._make_opener = plan, lines, make_opener
        self._folder = new_folder(Path(tempfile.gettempdir()))
        self._worker: Worker | None = None

    async def place(self) -> tuple[str, str]:
        """The machine that it is on: what it is called, and its id in the cluster."""
        return platform.node(), imported().get_runtime_context().get_node_id()

    async def ready(self) -> Ready | Failure:
        """As `Worker.ready`."""
        opener = self._make_opener(self._folder / ENGINE_LOG)
        self._worker = Worker(self._plan, opener, self._lines, self._folder / LOG)
        return await self._worker.ready()

    async def report(self, pause: float) -> Report:
        """As `Worker.report`."""
        assert self._worker is not None, "its driver waits until it is ready"
        return await self._worker.report(pause)

    async def give(self, tasks: Sequence[Task], closed: Collection[Line]) -> None:
        """As `Worker.give`."""
        assert self._worker is not None, "its driver waits until it is ready"
        await self._worker.give(tasks, closed)

    async def stop(self) -> None:
        """Close the engines; what they printed stays where they failed, since the failure's text names it."""
        if self._worker is not None:
            await self._worker.aclose()
            if not self._worker.failed:
                shutil.rmtree(self._folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Shape:
    """What each worker takes of a machine, and which machines it can be on."""

    gpus: int
    labels: Mapping[str, str]

    def fits(self, node: Node) -> int:
        """How many workers a machine has room for; one where they take no GPU."""
        if not self.labels.items() <= node.labels.items():
            return 0
        return node.gpus // self.gpus if self.gpus else 1

    def cpus(self, nodes: Sequence[Node], workers: int) -> int:
        """How many cores each of so many workers has on these machines: one, or where it takes no GPU, its share."""
        if self.gpus:
            return 1
        return max(1, min(node.cpus for node in nodes) // math.ceil(workers / len(nodes)))

    @property
    def told(self) -> str:
        """In words."""
        gpus = f"{self.gpus} GPU{'s' if self.gpus > 1 else ''}" if self.gpus else "no GPU"
        return ", ".join((gpus, *(f"{key}={value}" for key, value in self.labels.items())))


class RayRemote:
    """A worker in an actor."""

    def __init__(self, ray: ModuleType, actor: Any, name: str, latecomers: Latecomers) -> None:
        self._ray, self._actor, self._latecomers = ray, actor, latecomers
        self.name = name

    async def ready(self) -> Ready | Failure:
        try:
            machine, node = await self._placed()
        except WorkerLost:
            # A machine that has come may lack even what starts it.
            await self._latecomers.look()
            raise
        self.name = f"{self.name} on {machine}"
        if not await self._latecomers.take_part(node):
            raise WorkerLost(f"{self.name} cannot work there")
        return await self._of(self._actor.ready.remote())

    async def _placed(self) -> tuple[str, str]:
        """The machine that it is on; says so where the cluster has no room for it yet."""
        placed: asyncio.Future[tuple[str, str]] = asyncio.ensure_future(self._of(self._actor.place.remote()))
        _, waiting = await asyncio.wait({placed}, timeout=ROOM_SECONDS)
        if waiting:
            self._latecomers.say(f"{self.name} waits for room in the cluster")
        return await placed

    async def report(self, pause: float) -> Report:
        return await self._of(self._actor.report.remote(pause))

    async def give(self, tasks: Sequence[Task], closed: Collection[Line]) -> None:
        await self._of(self._actor.give.remote(tasks, closed))

    async def stop(self) -> None:
        with suppress(WorkerLost, TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await self._of(self._actor.stop.remote())
        self._ray.kill(self._actor)

    async def _of(self, answer: Awaitable[T]) -> T:
        errors = self._ray.exceptions
        try:
            return await answer
        except errors.RayTaskError:
            # What the worker itself raised: it is there.
            raise
        except errors.RayError as error:
            raise WorkerLost(f"{self.name} is gone ({first_line(error)})") from None


@dataclass(frozen=True)
class RayFleet:
    """The workers of one run in a cluster."""

    ray: ModuleType
    plan: Plan
    shape: Shape
    cpus: int
    size: int
    make_opener: MakeOpener
    latecomers: Latecomers

    async def start(self, number: int, lines: Sequence[Line]) -> RayRemote:
        actor = self.ray.remote(Actor).options(
            num_cpus=self.cpus,
            num_gpus=self.shape.gpus,
            max_restarts=0,
            label_selector={**self.shape.labels, **self.latecomers.labels},
            scheduling_strategy="SPREAD",
            runtime_env=environment(),
        )
        plan, keys = share_of(self.plan, self.size, number), keys_of(self.plan.config)
        started = actor.remote(plan, lines, self.make_opener, keys, self.cpus, Path.cwd())
        return RayRemote(self.ray, started, f"worker {number}", self.latecomers)


@asynccontextmanager
async def on_ray(
    plan: Plan, lines: Sequence[Line], jobs: int, watcher: Watcher, make_opener: MakeOpener = opener
) -> AsyncIterator[RayFleet]:
    """Workers in the cluster that the plan's config names, at most one for each job.

    Raises UserError where there is no such cluster, or one of its machines lacks something.
    """
    config = plan.config
    assert config.ray is not None, "whoever asks for a cluster names one"
    ray = imported()
    with connected(ray, config.ray, watcher):
        judging, talking = any(line.kind != "talk" for line in lines), TALK in lines
        players = hosted(plan, simulate=talking, judge=judging)
        profiles = [player.profile for player in players]
        nodes = nodes_of(ray)
        found = await looks(ray, profiles, nodes)
        gpus = config.actor_gpus
        if gpus is None:
            gpus = gpus_each(plan, [its.machine for its in found.values()], simulate=talking, judge=judging)
        shape = Shape(gpus, labels_of(players))
        fitting = [node for node in nodes if node.id in found and shape.fits(node)]
        _must_fit(config.ray, shape, fitting)
        here = look(profiles)
        for node in fitting:
            must_match(node.name, here, found[node.id])
        wanted = min(config.actors or sum(map(shape.fits, fitting)), jobs)
        size = min(wanted, (talking and most_workers(plan)) or wanted)
        told = f"{size} worker{'s' if size > 1 else ''} on {len(fitting)} machine{'s' if len(fitting) > 1 else ''}"
        watcher.say(f"Ray: {told}, each with {shape.told}.{fewer_told(plan, wanted, size)}")
        manifest.enter_cluster(plan.out, ray.__version__, size, shape.gpus, [node.name for node in fitting])
        latecomers = Latecomers(ray, here, profiles, watcher.say, seen={*found})
        yield RayFleet(ray, plan, shape, shape.cpus(fitting, size), size, make_opener, latecomers)


def _must_fit(address: str, shape: Shape, fitting: Sequence[Node]) -> None:
    if not fitting:
        raise UserError(
            f"--ray {address}: no machine of the cluster has room for a worker with {shape.told}; give fewer with "
            "--actor-gpus, or add such a machine"
        )
