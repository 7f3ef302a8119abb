"""The command line, in this process on a fake engine and as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.answers import at_random
from vera_local.cli import main
from vera_local.engine.fake import FakeEngine
from vera_local.engine.machine import Machine
from vera_local.engine.seam import Engine
from vera_local.run import Opener, Opening, identities

Command = Callable[..., int]
Process = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Run `vera-local` with these arguments in this process on a fake engine; gives the exit code."""

    def fake(log: Path) -> Opener:
        async def open_engine(opening: Opening) -> Engine:
            return FakeEngine(at_random)

        return open_engine

    # It could never be taken out of this process again.
    monkeypatch.setattr("vera_local.cli.guard.install", lambda: None)
    monkeypatch.setattr("vera_local.cli.app.opener", fake)
    monkeypatch.setattr("vera_local.cli.doctor.opener", fake)
    monkeypatch.setattr("vera_local.cli.selftest.opener", fake)
    monkeypatch.setattr("vera_local.cli.sweep.opener", fake)
    monkeypatch.setattr(identities, "locate", lambda profile: Path("/nowhere"))
    monkeypatch.setattr(identities, "model_digests", lambda folder: {})
    # Engines without a model need no memory, whatever their profiles say.
    monkeypatch.setattr("vera_local.run.host.this_machine", lambda: Machine("cpu", "2 CPU cores", 10**12, 0))

    def run(*arguments: str | Path) -> int:
        monkeypatch.setattr(sys, "argv", ["vera-local", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    # The command line sets both for its process, which here is that of all tests.
    monkeypatch.setattr("resource.setrlimit", lambda *_: None)
    before = os.umask(0o022)
    yield run
    os.umask(before)


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Run `vera-local` with these arguments as a process in an empty folder."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        program = Path(sys.executable).with_name("vera-local")
        return subprocess.run(
            [program, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )

    return run
