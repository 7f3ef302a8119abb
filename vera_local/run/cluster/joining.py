"""The cluster that a run is spread over: Ray itself, and being part of the cluster. Knows no worker and no run."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from vera_local.data import data_root
from vera_local.engine import guard
from vera_local.errors import UserError
from vera_local.run.cluster.scratch import new_folder
from vera_local.run.progress import Watcher

LOCAL = "local"
"""Instead of a cluster's address: a cluster of this machine alone, for this command."""

AUTO = "auto"
"""Instead of a cluster's address: the cluster that this machine is part of."""

PREFIX = "vera-ray-"
"""What the folder of a local cluster begins with; what is left of one whose command was killed is of no use."""

OPEN = (
    "Ray: RAY_AUTH_MODE is not token, so whoever reaches the cluster's ports can run programs on its machines; see "
    "docs/scaling.md."
)
"""Said where a cluster may ask nobody who they are."""

ANSWER_SECONDS = 10.0
"""Time for the head of a cluster to answer at all."""

STORE_BYTES = 200_000_000
"""Shared memory of a local cluster, for reports and jobs that are larger than a message."""


def imported() -> ModuleType:
    """Ray; UserError where it is not installed."""
    try:
        import ray
    except ImportError:
        told = f"--ray needs Ray: install it with `{_how_to_install()}`, on every machine of the cluster"
        raise UserError(told) from None
    module: ModuleType = ray
    return module


def _how_to_install() -> str:
    """The command that puts Ray into the environment that this process is of."""
    checkout = data_root()
    if Path(sys.prefix).resolve() == checkout / ".venv":
        return f"bash {shlex.quote(str(checkout / 'scripts/setup.sh'))} --ray"
    return f"{shlex.quote(sys.executable)} -m pip install 'vera-local[ray]'"


@contextmanager
def connected(ray: ModuleType, address: str, watcher: Watcher) -> Iterator[None]:
    """Be part of the cluster meanwhile; one of this machine alone is made for it and taken down again."""
    if address.startswith("ray://"):
        raise UserError(
            f"--ray {address}: run the command on a machine of the cluster, with the address that `ray start` told "
            "(HOST:PORT), or auto"
        )
    _must_answer(address)
    folder = new_folder(Path(tempfile.gettempdir()), PREFIX, kept=0) if address == LOCAL else None
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
        with _own_signals(), _open(folder is not None):
            ray.init(
                address=address,
                namespace="vera_local",
                log_to_driver=False,
                configure_logging=False,
                logging_level=logging.ERROR,
                **own,
            )
    except (OSError, RuntimeError, ValueError) as error:
        told = f"--ray {address}: {' '.join(str(error).split())}"
        raise UserError(
            f"{told}; see that the cluster is up, that this machine is part of it and, where it asks for a token, that "
            "RAY_AUTH_MODE is token here, too, with the same ~/.ray/auth_token"
        ) from None


@contextmanager
def _open(here: bool) -> Iterator[None]:
    """Let Ray's own processes, where they are started `here`, listen to other machines: they do so whatever they are
    told. Workers are told otherwise."""
    guard.configure(open=here)
    try:
        yield
    finally:
        guard.configure(open=False)


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
