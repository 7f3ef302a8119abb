"""Ways to harm a command from within its process. Knows not what comes of it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import signal
import sqlite3
import subprocess
import sys
import termios
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self
from unittest import mock

from tests.victims import Plot
from vera_local.engine.seam import EngineLost
from vera_local.engine.vllm import not_started
from vera_local.run import reviving

HOUR = 3600.0


class Slow(Plot):
    """Takes its time, so that one can look on."""

    async def asked(self, number: int, engines: int) -> None:
        await asyncio.sleep(0.01)


class Killed(Plot):
    """kill -9."""

    async def asked(self, number: int, engines: int) -> None:
        if number == self.moment:
            os.kill(os.getpid(), signal.SIGKILL)


class KilledAnywhere(Plot):
    """kill -9 at an event of that number: a request, an SQL statement, within a commit as well, or a file of the run's
    folder that is opened, renamed or removed. Where it is not killed, it writes down how many events there were."""

    def begin(self, folder: Path, stack: ExitStack) -> None:
        self.events, connect, place = 0, sqlite3.connect, str(folder)

        def heard(event: str, given: tuple[Any, ...]) -> None:
            if event in ("open", "os.rename", "os.remove") and str(given[0]).startswith(place):
                self._happened()

        def traced(*given: Any, **named: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*given, **named)
            connection.set_trace_callback(lambda statement: self._happened())
            return connection

        sys.addaudithook(heard)
        stack.enter_context(mock.patch("sqlite3.connect", traced))
        stack.callback(lambda: (folder.parent / "events").write_text(str(self.events)))

    async def asked(self, number: int, engines: int) -> None:
        self._happened()

    def _happened(self) -> None:
        self.events += 1
        if self.events == self.moment:
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Lost(Plot):
    """The engine is lost, so that its request gets no reply."""

    words: str = "vLLM's engine process ended"

    async def asked(self, number: int, engines: int) -> None:
        if number == self.moment:
            raise EngineLost(self.words)


@dataclass
class NoMemoryToOpen(Lost):
    """The engine is lost, and there is no memory to open it anew: what its process wrote then was `written`."""

    written: str = ""

    def opened(self, engines: int) -> None:
        if engines > 1:
            raise not_started("smollm2", RuntimeError("Engine core initialization failed."), self.written, Path("log"))


class Hung(Plot):
    """The first engine replies no more."""

    def begin(self, folder: Path, stack: ExitStack) -> None:
        stack.enter_context(mock.patch.object(reviving, "HUNG_SECONDS", 0.3))

    async def asked(self, number: int, engines: int) -> None:
        if number >= self.moment and engines == 1:
            await asyncio.Event().wait()


class FullDisk(Plot):
    """The file system of the run's folder, which is one of its own, has no room any more."""

    def begin(self, folder: Path, stack: ExitStack) -> None:
        self.disk = folder.parent

    async def asked(self, number: int, engines: int) -> None:
        if number == self.moment:
            now = os.statvfs(self.disk)
            used = (now.f_blocks - now.f_bfree) * now.f_frsize
            subprocess.run(["mount", "-o", f"remount,size={used}", self.disk], check=True)


class _OnStore(Plot):
    """Knows the connections to the store, which waits for no other program."""

    def begin(self, folder: Path, stack: ExitStack) -> None:
        self.file = folder / "run.sqlite"
        self.connect, self.connections = sqlite3.connect, list[sqlite3.Connection]()

        def connect(*given: Any, **named: Any) -> sqlite3.Connection:
            self.connections.append(self.connect(*given, **named | {"timeout": 0.05}))
            return self.connections[-1]

        stack.enter_context(mock.patch("sqlite3.connect", connect))


class ReadOnlyDisk(_OnStore):
    """Nothing can be written to the store any more."""

    async def asked(self, number: int, engines: int) -> None:
        if number == self.moment:
            for connection in self.connections:
                connection.execute("pragma query_only = on")


class LockedStore(_OnStore):
    """Another program writes to the store and does not end."""

    async def asked(self, number: int, engines: int) -> None:
        if number == self.moment:
            self.other = self.connect(self.file, isolation_level=None)
            self.other.execute("begin immediate")


@dataclass
class Signalled(Plot):
    """Somebody asks for the end."""

    number: int = signal.SIGTERM

    async def asked(self, number: int, engines: int) -> None:
        if number == self.moment:
            os.kill(os.getpid(), self.number)


class UnderNohup(Signalled):
    """The same, where that signal is ignored."""

    def begin(self, folder: Path, stack: ExitStack) -> None:
        signal.signal(self.number, signal.SIG_IGN)


class TerminalClosed(Plot):
    """The command has a terminal, which is closed."""

    def begin(self, folder: Path, stack: ExitStack) -> None:
        os.setsid()
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
        for standard in range(3):
            os.dup2(theirs, standard)
        os.close(theirs)
        self.closing = threading.Event()
        threading.Thread(target=self._show, daemon=True).start()

    def _show(self) -> None:
        """Be the terminal, which reads what it is to show."""
        while not self.closing.is_set():
            if select.select([self.ours], [], [], 0.01)[0]:
                os.read(self.ours, 65536)
        os.close(self.ours)

    async def asked(self, number: int, engines: int) -> None:
        if number == self.moment:
            self.closing.set()


class ClockJumps(Plot):
    """Hours forward, and three requests later a day back."""

    def begin(self, folder: Path, stack: ExitStack) -> None:
        self.off, real = 0.0, time.time
        stack.enter_context(mock.patch("time.time", lambda: real() + self.off))
        stack.enter_context(mock.patch("time.time_ns", lambda: int((real() + self.off) * 1e9)))

        class Shifted(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Self:
                return super().now(tz) + timedelta(seconds=self.off)

        for module in [*sys.modules.values()]:
            if module.__name__.startswith("vera_local") and getattr(module, "datetime", None) is datetime:
                stack.enter_context(mock.patch.object(module, "datetime", Shifted))

    async def asked(self, number: int, engines: int) -> None:
        if number == self.moment:
            self.off = 7 * HOUR
        if number == self.moment + 3:
            self.off = -24 * HOUR


@dataclass
class Paused(Plot):
    """Goes on only once it is told to: `here` appears then, and `on` is waited for."""

    here: Path = Path()
    on: Path = Path()

    async def asked(self, number: int, engines: int) -> None:
        if number == self.moment:
            self.here.touch()
            while not self.on.exists():
                await asyncio.sleep(0.01)
