"""Plans and engines for runs without a model."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from vera_local.engine.fake import FakeEngine, Handler
from vera_local.engine.machine import Machine
from vera_local.engine.seam import Engine, Limits, Request
from vera_local.run import Opening, Plan, Watcher, identities, load_config, make_plan

MakePlan = Callable[..., Plan]


class Opened:
    """An opener of fake engines that remembers what it opened."""

    def __init__(self, handler: Handler, limits: Limits | None = None) -> None:
        self.engines: list[FakeEngine] = []
        self.openings: list[Opening] = []
        self._handler = handler
        self._limits = limits

    async def __call__(self, opening: Opening) -> Engine:
        self.openings.append(opening)
        self.engines.append(FakeEngine(self._handler, self._limits))
        return self.engines[-1]

    @property
    def requests(self) -> list[Request]:
        """All that was asked, probes included."""
        return [request for engine in self.engines for request in engine.requests]


@pytest.fixture(autouse=True)
def no_model_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded model need not be converted where no model is opened."""
    monkeypatch.setattr(identities, "locate", lambda profile: Path("/nowhere") / profile.name)
    monkeypatch.setattr(identities, "model_digests", lambda folder: {"config.json": f"digest of {folder.name}"})


@pytest.fixture(autouse=True)
def roomy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines without a model need no memory, whatever their profiles say."""
    monkeypatch.setattr("vera_local.run.host.this_machine", lambda: Machine("cpu", "2 CPU cores", 10**12, 0))


@pytest.fixture
def make(tmp_path: Path) -> MakePlan:
    """A plan in a folder of its own; keywords as the command line's flags."""

    def plan(**flags: Any) -> Plan:
        return make_plan(load_config(None, {"out": tmp_path / "run", "personas": 4, "turns": 4} | flags))

    return plan


@pytest.fixture
def watcher() -> Watcher:
    """Progress into nothing."""
    return Watcher(Console(file=io.StringIO()))


@pytest.fixture
def answering() -> Callable[..., Opened]:
    """Makes an opener whose engines answer with the given handler."""

    def make_opener(handler: Handler, limits: Limits | None = None) -> Opened:
        return Opened(handler, limits)

    return make_opener
