"""A process that answers lines of JSON with lines of JSON, and dies with us. Knows no chatbot and no conversation."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from vera_local.chatbot.manners import Fault
from vera_local.engine import heirs
from vera_local.engine.child import HOST_VARIABLE

END_SECONDS = 2.0
"""Time for a process to end by itself once its input is closed."""

LOOK_SECONDS = 0.1
"""Pause between two looks whether a process has ended."""

LAST_WORDS = 2000
"""Bytes of a process's error output that are kept, to tell why it ended."""

_TIED = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Becomes the program, which then dies with us, even when we are killed by kill -9."""


class Gone(Fault):
    """The process has ended, or is of no more use."""


class Process:
    """One process in a session of its own, so that Ctrl-C does not reach it and all that it starts ends with it."""

    def __init__(self, process: asyncio.subprocess.Process, tell: Callable[[str], str]) -> None:
        self._process = process
        self._tell = tell
        self._words = b""
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, command: Sequence[str], line_limit: int, tell: Callable[[str], str]) -> Process:
        """Start `command`; a line of its output may have `line_limit` bytes. `tell` makes words of its fit to tell."""
        tied = [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid())] if sys.platform == "linux" else []
        pipe = asyncio.subprocess.PIPE
        return cls(
            await asyncio.create_subprocess_exec(
                *tied,
                *command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                limit=line_limit,
                start_new_session=True,
                env=_environment(),
            ),
            tell,
        )

    async def exchange(self, request: Mapping[str, Any]) -> Any:
        """What comes back for one line; Gone where that is no JSON, or nothing more will come.

        One line too many would make every later reply the answer to an earlier message.
        """
        line = await self._line_for(json.dumps(request).encode() + b"\n")
        if not line.endswith(b"\n"):
            raise Gone(await self._how_it_ended())
        try:
            return json.loads(line.decode("utf-8"))
        except UnicodeDecodeError:
            raise Gone("its reply is not in UTF-8") from None
        except (ValueError, RecursionError):
            raise Gone("its reply is not a line of JSON") from None

    async def _line_for(self, request: bytes) -> bytes:
        """The line that follows a request, cut or empty where the process ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        reading = asyncio.create_task(self._process.stdout.readline())
        ending = asyncio.create_task(self._ended())
        try:
            # Gives it the time to find a line that is there already.
            await asyncio.sleep(0)
            if reading.done() and reading.exception() is None and reading.result():
                raise Gone("it wrote a line that nobody had asked for")
            with suppress(ConnectionError):
                self._process.stdin.write(request)
                await self._process.stdin.drain()
            await asyncio.wait({reading, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                # What it wrote is there by now; but what it started may hold its output open.
                await asyncio.wait({reading}, timeout=END_SECONDS)
            return await reading if reading.done() else b""
        except ValueError:
            raise Gone("its reply is longer than a line may be") from None
        finally:
            reading.cancel()
            ending.cancel()

    async def close(self) -> None:
        """Close its input and wait for its end, forced where it takes too long."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            pass
        finally:
            await self.kill()

    async def kill(self) -> None:
        """End it and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        # Whoever holds its pipes by now is none of its group; reading them to their end closes them.
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(END_SECONDS):
                await self._process.communicate()

    async def _listen(self) -> None:
        """Keep the last words, so that its error output neither fills up nor is lost."""
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(LAST_WORDS):
            self._words = (self._words + chunk)[-LAST_WORDS:]

    async def _ended(self) -> int:
        """The code it ended with. Waiting for that would also wait for all that holds its pipes, so we look for it."""
        while (code := self._process.returncode) is None:
            await asyncio.sleep(LOOK_SECONDS)
        return code

    async def _how_it_ended(self) -> str:
        try:
            async with asyncio.timeout(END_SECONDS):
                code = await self._ended()
        except TimeoutError:
            return "its process closed its output"
        await asyncio.wait({self._listening}, timeout=END_SECONDS)
        said = self._words.decode(errors="replace").strip().splitlines()
        return f"its process ended with code {code}" + (f" ({self._tell(said[-1])})" if said else "")


def _environment() -> heirs.Disowned:
    """Ours without what ties and guards the processes of a run: the program is its user's own."""
    kept = {name: value for name, value in os.environ.items() if name != HOST_VARIABLE}
    # A Python program would otherwise keep its lines in a buffer.
    return heirs.disowned(kept | {"PYTHONUNBUFFERED": "1"})
