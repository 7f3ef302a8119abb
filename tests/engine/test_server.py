"""A server that takes many requests at once, and one that is silent."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from tests.engine.http_server import (
    CHAT,
    LIST,
    MESSAGES,
    MODELS,
    SAMPLING,
    Handler,
    Server,
    broken,
    completion,
    in_turn,
    opened,
)
from tests.engine.http_server import profile as of_model
from vera_local.engine.openai import OpenAIEngine
from vera_local.engine.seam import EngineDied, EngineError, Request
from vera_local.engine.server import LISTED_WITHIN, TIMEOUT, Address

HELLO = Request(MESSAGES, SAMPLING)
SILENT = broken(httpx.ReadTimeout(""))
CHOKED = broken(httpx.WriteTimeout(""))


async def test_a_server_that_takes_many_at_once_is_sent_as_many() -> None:
    """None is answered before all of them are there."""
    many, waiting, all_there = 101, 0, asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal waiting
        body: dict[str, Any] = MODELS
        if b"chat" in await reader.readuntil(b"\r\n\r\n"):
            waiting, body = waiting + 1, completion()
            if waiting == many:
                all_there.set()
            await all_there.wait()
        told = json.dumps(body).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(told), told))
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=many)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        engine = await OpenAIEngine.open(of_model(), Address(f"http://127.0.0.1:{port}/v1", many))
        async with asyncio.timeout(30):
            await asyncio.gather(*(engine.generate(HELLO) for _ in range(many)))
        await engine.aclose()
    assert waiting == many


@pytest.mark.parametrize("silent", [SILENT, CHOKED])
async def test_a_request_that_is_not_answered_in_time_is_not_sent_again(silent: Handler) -> None:
    server = Server(**{CHAT: silent})
    with pytest.raises(EngineError, match=f"no answer within {TIMEOUT.read:g} s") as caught:
        await (await opened(server)).generate(HELLO)
    assert type(caught.value) is EngineError
    assert [request.url.path for request in server.requests] == [LIST, CHAT, LIST]
    assert server.requests[-1].extensions["timeout"]["read"] == LISTED_WITHIN


async def test_a_server_that_does_not_even_list_its_models_in_time_has_died() -> None:
    server = Server(**{CHAT: SILENT, LIST: in_turn(MODELS, SILENT)})
    with pytest.raises(EngineDied, match=f"no longer answers .no answer within {TIMEOUT.read:g} s"):
        await (await opened(server)).generate(HELLO)
    assert len(server.requests) == 3


async def test_whether_a_silent_server_is_there_is_asked_beside_all_that_wait_for_it() -> None:
    """Else the question would wait behind them, each of which waits as long as the first did."""

    class Hung(Server):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path == CHAT and self.bodies(CHAT):
                self.requests.append(request)
                await asyncio.Event().wait()
            return await super().handle_async_request(request)

    server = Hung(**{CHAT: SILENT})
    engine = await OpenAIEngine.open(of_model(), Address("http://gpu-box:8000/v1", 1), None, server)
    first, *others = [asyncio.create_task(engine.generate(HELLO)) for _ in range(3)]
    async with asyncio.timeout(5):
        with pytest.raises(EngineError, match="no answer within"):
            await first
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
