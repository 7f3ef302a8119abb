"""Whole commands on a fake engine, each in a process of its own that has everything imported when it begins, to be
harmed. Knows no way to harm them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from tests.answers import at_random
from vera_local.cli import main
from vera_local.engine.fake import FakeEngine
from vera_local.engine.machine import Machine
from vera_local.engine.probe import SEED as PROBE
from vera_local.engine.seam import Engine, Request
from vera_local.run import Opener, Opening, identities

PRELOADED = (
    "tests.faults",
    "numpy.random",
    "polars",
    "vera_local.cli.app",
    "vera_local.cli.interrupt",
    "vera_local.report.html.render",
    "vera_local.report.reading",
)


@dataclass
class Plot:
    """What is done to a command from within its process. Nothing, unless a method is overridden.

    `moment`: the request before whose answer it is done, from 1; trials of judges do not count.
    """

    moment: int = 0

    def begin(self, folder: Path, stack: ExitStack) -> None:
        """Before the command on this folder; what is entered into the stack is left when it ended in order."""

    def opened(self, engines: int) -> None:
        """Before the engine of that number is opened, from 1."""

    async def asked(self, number: int, engines: int) -> None:
        """Before the request of that number is answered, `engines` having been opened so far."""


class Ended(NamedTuple):
    """Exit code (negative: the signal that killed it) and what was told."""

    code: int
    told: str


@dataclass
class Victim:
    """A command that is under way, or has ended."""

    process: ForkServerProcess
    told: Path

    def end(self) -> Ended:
        """Wait for its end."""
        self.process.join(60)
        code = self.process.exitcode
        self.process.kill()
        assert code is not None, f"it hangs: {self.told.read_text()}"
        return Ended(code, " ".join(self.told.read_text().split()))


class Victims:
    """Starts commands; `folder` gets what they tell and the seeds of what each asked."""

    def __init__(self, folder: Path) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([*PRELOADED])
        self._folder = folder
        self._started = 0

    def start(self, plot: Plot, *arguments: str, digest: str = "0123") -> Victim:
        """Start `vera-local` with these arguments, of which the last is the run's folder."""
        self._started += 1
        told = self._folder / f"told{self._started}"
        told.touch()
        self.asked_by_last.touch()
        life = (arguments, plot, told, self.asked_by_last, digest)
        process = self._context.Process(target=live, args=life)
        process.start()
        return Victim(process, told)

    def run(self, plot: Plot, *arguments: str, digest: str = "0123") -> Ended:
        """Start it and wait for its end."""
        return self.start(plot, *arguments, digest=digest).end()

    @property
    def asked_by_last(self) -> Path:
        """The seeds of the requests of the command that was started last, one a line; trials of judges left out."""
        return self._folder / f"asked{self._started}"

    def seeds(self) -> list[int]:
        """The same as numbers."""
        return [int(line) for line in self.asked_by_last.read_text().split()]


def live(arguments: tuple[str, ...], plot: Plot, told: Path, asked: Path, digest: str) -> None:
    """What a victim's process does."""
    descriptor = os.open(told, os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    # Whatever the tests ignore, as under nohup.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    sys.argv = ["vera-local", *arguments]
    with ExitStack() as stack:
        for patch in (
            mock.patch("vera_local.cli.app.opener", lambda log: _opener(plot, asked)),
            mock.patch("vera_local.cli.interrupt._STDERR", 2),
            mock.patch("vera_local.run.host.this_machine", lambda: Machine("cpu", "2 CPU cores", 10**12, 0)),
            mock.patch.object(identities, "locate", lambda profile: Path("/nowhere")),
            mock.patch.object(identities, "model_digests", lambda folder: {"model.safetensors": digest}),
        ):
            stack.enter_context(patch)
        plot.begin(Path(arguments[-1]), stack)
        main()


def _opener(plot: Plot, asked: Path) -> Opener:
    log, engines, number = asked.open("a", buffering=1), 0, 0

    async def answer(request: Request) -> str:
        nonlocal number
        if request.sampling.seed != PROBE:
            number += 1
            log.write(f"{request.sampling.seed}\n")
            await plot.asked(number, engines)
        return at_random(request)

    async def open_engine(opening: Opening) -> Engine:
        nonlocal engines
        engines += 1
        plot.opened(engines)
        return FakeEngine(answer)

    return open_engine
