"""How an OpenAI-compatible server is reached, and what its faults mean. Knows no prompt and no model files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import httpx

from vera_local.engine.seam import EngineDied, EngineError, InvalidRequest
from vera_local.errors import UserError
from vera_local.unquoted import unquoted

SEQUENCES = 64
"""Requests held open at once: enough to fill a server's batch, few enough not to exhaust its sockets."""


class Address(NamedTuple):
    """Where a server is, and how many requests it is sent at once."""

    url: str
    requests: int = SEQUENCES


PAUSES = (0.5, 1.0, 2.0)
"""Seconds waited before each further try after a lost connection or a server fault."""

BUSY = (408, 429)
"""Statuses below 500 with which a server asks to be tried again."""

REFUSED = (401, 403)
"""Statuses that mean a missing or wrong key."""

ABSENT = (404, 405)
"""Statuses that mean that there is nothing at a path."""

TIMEOUT = httpx.Timeout(600.0, connect=5.0)
"""A long generation may take minutes; a server that is there accepts within seconds."""

TOLD = 300
"""Characters of a refusal that are told."""

SILENT = (httpx.ReadTimeout, httpx.WriteTimeout)
"""What says that a server which accepted a request did nothing with it for all that time."""

LISTED_WITHIN = 30.0
"""Seconds within which a server that is there lists its models, however much it has to do."""


class NotThere(InvalidRequest):
    """The server has nothing at this path."""


class Unreached(UserError):
    """The server does not answer, or not yet."""


class Server:
    """One server, sent no more at once than it takes. `post` tries again after faults that may pass."""

    def __init__(self, at: Address, key_variable: str | None, transport: httpx.AsyncBaseTransport | None) -> None:
        self._url = at.url
        self._client = _client(at, _headers(key_variable), transport)
        self._free = asyncio.Semaphore(at.requests)

    async def models(self) -> dict[str, int | None]:
        """Id of each served model -> its context in tokens, None where the server does not say.

        Raises Unreached where no server answers, UserError where it is no such server.
        """
        try:
            response = await self._list()
        except httpx.RequestError as error:
            raise Unreached(
                f"no server answers at {self._url} ({_reason(error)}); start it or correct the base URL"
            ) from error
        return _models(response, self._url)

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer, a JSON object. `path` is relative to the base URL. Raises an EngineError."""
        try:
            response = await self._ask(partial(self._post, path, body))
        except SILENT:
            fault = f"no answer within {TIMEOUT.read:g} s"
        else:
            if response.status_code < 500:
                return _answer(response, body)
            fault = f"status {response.status_code}"
        await self._must_be_there(fault)
        raise EngineError(f"the server failed at this request ({fault})")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        async with self._free:
            return await self._client.post(path, json=body)

    async def _list(self) -> httpx.Response:
        # It costs no model anything, and must not wait behind requests to a server that hangs.
        return await self._client.get("models", timeout=httpx.Timeout(LISTED_WITHIN, connect=TIMEOUT.connect))

    async def _must_be_there(self, fault: str) -> None:
        """EngineDied, for this `fault`, unless the list of models still comes."""
        try:
            response = await self._ask(self._list)
        except SILENT:
            raise self._died(fault) from None
        if response.status_code >= 500:
            raise self._died(f"status {response.status_code}")

    async def _ask(self, send: Callable[[], Awaitable[httpx.Response]]) -> httpx.Response:
        """What comes back, asked for again while it is a fault; a fault of the server that stays is returned.

        Raises EngineDied where the connection stays lost or the server stays too busy: that concerns every request;
        one of SILENT at once, since whoever was silent for so long would be so again.
        """
        fault = ""
        for pause in (*PAUSES, None):
            try:
                response = await send()
                status = response.status_code
                if status not in BUSY and (status < 500 or pause is None):
                    return response
                fault = f"status {status}"
            except SILENT:
                raise
            except httpx.RequestError as error:
                fault = _reason(error)
            if pause is not None:
                await asyncio.sleep(pause)
        raise self._died(fault)

    def _died(self, fault: str) -> EngineDied:
        return EngineDied(f"the server at {self._client.base_url} no longer answers ({fault})")


def _headers(key_variable: str | None) -> dict[str, str]:
    if key_variable is None:
        return {}
    key = os.environ.get(key_variable, "").strip()
    if not key:
        raise UserError(f"the environment variable {key_variable} is empty; put the server's key into it")
    if not (key.isascii() and key.isprintable()):
        # Refused here, because the HTTP library would show it in its complaint.
        raise UserError(f"the environment variable {key_variable} holds characters that no key has; correct it")
    return {"Authorization": f"Bearer {key}"}


def _client(at: Address, headers: dict[str, str], transport: httpx.AsyncBaseTransport | None) -> httpx.AsyncClient:
    # With a transport of its own a client ignores HTTP_PROXY: conversations go to the named server and nowhere else.
    # Left to itself it would hold no more than 100 connections, whatever the server takes.
    transport = transport or httpx.AsyncHTTPTransport(limits=httpx.Limits(max_keepalive_connections=at.requests))
    try:
        return httpx.AsyncClient(
            base_url=at.url.rstrip("/") + "/", headers=headers, timeout=TIMEOUT, transport=transport
        )
    except httpx.InvalidURL as error:
        raise UserError(f"{at.url} is no URL ({error}); correct the base URL") from error


def _reason(error: httpx.RequestError) -> str:
    return str(error) or type(error).__name__


def _models(response: httpx.Response, base_url: str) -> dict[str, int | None]:
    status = response.status_code
    if status in REFUSED:
        raise UserError(f"the server at {base_url} refuses access (status {status}); name the variable with its key")
    if status >= 500 or status in BUSY:
        raise Unreached(f"the server at {base_url} is not ready (status {status}); try again when it is")
    try:
        return {str(model["id"]): _context(model) for model in response.json()["data"]}
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UserError(
            f"{base_url} is no OpenAI-compatible server (status {status} and no list of models); "
            "the URL usually ends in /v1"
        ) from error


def _context(model: dict[str, Any]) -> int | None:
    length = model.get("max_model_len")
    return None if length is None else int(length)


def _answer(response: httpx.Response, asked: Mapping[str, Any]) -> dict[str, Any]:
    status = response.status_code
    if status in REFUSED:
        # Without its words, which may repeat the key.
        raise InvalidRequest(f"the server refuses access with status {status}")
    if status >= 400:
        kind = NotThere if status in ABSENT else InvalidRequest
        # Many a server quotes what it refuses.
        words = unquoted(response.content.decode(errors="replace"), _prompts(asked))[:TOLD]
        raise kind(f"the server refused a request with status {status}: {words}")
    try:
        answer = response.json()
    except (ValueError, RecursionError) as error:
        raise EngineError("the server answered with something that is not JSON") from error
    if not isinstance(answer, dict):
        raise EngineError("the server answered with JSON that is not an object")
    return answer


def _prompts(asked: Mapping[str, Any]) -> list[str]:
    """The texts of a request that say something, or the ids of their tokens."""
    said = [message["content"] for message in asked.get("messages", ())]
    return [*said, *(str(asked[key]) for key in ("prompt", "tokens") if key in asked)]
