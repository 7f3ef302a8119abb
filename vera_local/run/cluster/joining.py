"""A Ray cluster: joined and left again, its machines, and what they have. Knows no worker."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from vera_local.engine import guard, heirs
from vera_local.engine.offline import SWITCHES
from vera_local.engine.profile import Profile
from vera_local.errors import UserError
from vera_local.run.cluster.nodes import Look, look
from vera_local.run.progress import Watcher

LOCAL = "local"
"""Instead of a cluster's address: a cluster of this machine alone, for this command."""

AUTO = "auto"
"""Instead of a cluster's address: the cluster that this machine is part of."""

OPEN = (
    "Ray: RAY_AUTH_MODE is not token, so whoever reaches the cluster's ports can run programs on its machines; see "
    "docs/scaling.md."
)
"""Said where a cluster may ask nobody who they are."""

ANSWER_SECONDS = 10.0
"""Time for the head of a cluster to answer at all."""

STORE_BYTES = 200_000_000
"""Shared memory of a local cluster, for reports and jobs that are larger than a message."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster. `gpus` and `cpus`: how many it offers."""

    id: str
    name: str
    gpus: int
    cpus: int
    labels: Mapping[str, str]


def imported() -> ModuleType:
    """Ray; UserError where it is not installed."""
    try:
        import ray
    except ImportError:
        raise UserError("--ray needs Ray: install it with `pip install 'vera-local[ray]'` on every machine") from None
    module: ModuleType = ray
    return module


@contextmanager
def connected(ray: ModuleType, address: str, watcher: Watcher) -> Iterator[None]:
    """Be part of the cluster meanwhile; one of this machine alone is made for it and taken down again."""
    if address.startswith("ray://"):
        raise UserError(
            f"--ray {address}: run the command on a machine of the cluster, with the address that `ray start` told "
            "(HOST:PORT), or auto"
        )
    _must_answer(address)
    folder = Path(tempfile.mkdtemp(prefix="vera-ray-")) if address == LOCAL else None
    try:
        with watcher.waiting("Starting Ray here" if address == LOCAL else f"Joining the Ray cluster at {address}"):
            _join(ray, address, folder)
        if folder is None and os.environ.get("RAY_AUTH_MODE") != "token":
            watcher.say(OPEN)
        yield
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _must_answer(address: str) -> None:
    """UserError where nothing listens there; Ray itself would try for minutes."""
    if address in (LOCAL, AUTO):
        return
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdigit()):
        raise UserError(f"--ray {address}: write HOST:PORT, auto or local")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"--ray {address}: nothing answers there ({error}); see that the cluster is up (`ray status` on its head)"
        ) from None


def _join(ray: ModuleType, address: str, folder: Path | None) -> None:
    own: dict[str, Any] = {}
    if folder is not None:
        own = {"_temp_dir": str(folder), "include_dashboard": False, "object_store_memory": STORE_BYTES}
    try:
        with _own_signals():
            ray.init(
                address=address,
                namespace="vera_local",
                log_to_driver=False,
                configure_logging=False,
                logging_level=logging.ERROR,
                **own,
            )
    except (ConnectionError, RuntimeError, ValueError) as error:
        told = f"--ray {address}: {' '.join(str(error).split())}"
        raise UserError(f"{told}; see that the cluster is up and that this machine is part of it") from None


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep what this process does when it is told to end: Ray would end it in its own way."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


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
    """What each machine has, by its id; UserError, naming it, where it cannot be asked."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(look)

    async def of(node: Node) -> Look:
        here = NodeAffinitySchedulingStrategy(node.id, soft=False)
        asked = task.options(num_cpus=0, scheduling_strategy=here, runtime_env=environment(), max_retries=1)
        try:
            found: Look = await asked.remote(profiles)
        except ray.exceptions.RayError as error:
            raise UserError(
                f"{node.name} cannot take part: {first_line(error)}; install vera-local there as here"
            ) from None
        return found

    return dict(zip([node.id for node in nodes], await asyncio.gather(*map(of, nodes)), strict=True))


def environment() -> dict[str, dict[str, str]]:
    """What a process of ours has to have before it imports anything; it has a log of its own for its attempts."""
    told = guard.as_told(log=None)
    return {"env_vars": SWITCHES | ({} if told is None else {heirs.VARIABLE: told})}


def first_line(error: BaseException) -> str:
    """What it says, without the stack that Ray adds."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".:;") if lines else type(error).__name__
