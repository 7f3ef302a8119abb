"""A server of raw bytes, for all that a service can do wrong."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

ERROR = "INTERNAL-ERROR-TEXT"
"""Stands in the body of every fault: nothing that holds it is a reply."""

HUGE = 10_000_000


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Act = Callable[[asyncio.StreamWriter], Awaitable[None]]
Decide = Callable[[Asked], Act]


@dataclass
class Raw:
    """A running server; `asked` keeps the requests, in order."""

    decide: Decide
    port: int = 0
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                method, target, _ = lines[0].split(" ")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:] if line)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.asked.append(Asked(method, target, headers, body))
                await self.decide(self.asked[-1])(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(decide: Decide, port: int = 0) -> AsyncIterator[Raw]:
    raw = Raw(decide)
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(raw.handle(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    raw.port = server.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def sent(body: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> Act:
    """A whole answer."""

    async def act(writer: asyncio.StreamWriter) -> None:
        told = {"Content-Type": kind, "Content-Length": str(len(body))} | {
            k.replace("_", "-"): v for k, v in headers.items()
        }
        lines = "".join(f"{k}: {v}\r\n" for k, v in told.items())
        writer.write(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + body)
        await writer.drain()

    return act


def said(content: Any) -> Act:
    """JSON, as it should be."""
    return sent(json.dumps(content).encode())


async def hangs(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


async def resets(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    raise ConnectionError


async def breaks_off(writer: asyncio.StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n" + b'{"reply": "INT'
    )
    await writer.drain()
    raise ConnectionError


def late(act: Act, seconds: float) -> Act:
    async def wait(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        await act(writer)

    return wait


def faults() -> dict[str, Act]:
    """Every fault by name."""
    wrong = json.dumps({"reply": ERROR}).encode()
    return {
        "500": sent(wrong, 500),
        "503": sent(ERROR.encode(), 503, "text/html"),
        "429": sent(wrong, 429, Retry_After="0"),
        "429 with a date": sent(wrong, 429, Retry_After=formatdate(usegmt=True)),
        "hang": hangs,
        "reset": resets,
        "broken off": breaks_off,
        "half": sent(b'{"reply": "' + ERROR.encode()),
        "huge": sent(json.dumps({"reply": ERROR + "x" * HUGE}).encode()),
        "wrong type": sent(wrong, kind="text/html"),
        "invalid UTF-8": sent(b'{"reply": "' + ERROR.encode() + b'\xff"}'),
        "no reply": sent(json.dumps({"error": ERROR}).encode()),
    }


@dataclass
class Faulty:
    """Decides by chance, from a seed of its own: `share` of the answers are faults."""

    good: Callable[[Asked], Act]
    share: float
    draw: random.Random = field(default_factory=lambda: random.Random(0))
    counted: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._faults = faults()

    def __call__(self, asked: Asked) -> Act:
        name = self.draw.choice(sorted(self._faults)) if self.draw.random() < self.share else "good"
        self.counted[name] += 1
        return self._faults[name] if name in self._faults else self.good(asked)
