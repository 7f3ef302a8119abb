"""One HTTP request to a chatbot's service, and all that can be wrong with what comes back. Knows no service's JSON."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from vera_local.chatbot.keyring import Keyring
from vera_local.chatbot.manners import Fault
from vera_local.chatbot.protocol import ChatbotFailed, ChatbotOverflow
from vera_local.chatbot.settings import Manners
from vera_local.errors import UserError

BUSY = frozenset({408, 425, 429})
"""Statuses below 500 with which a service asks to be tried again."""

UNKNOWN = frozenset({404, 410})
"""Statuses with which a service says that there is nothing at an address, or no longer."""

REFUSED = frozenset({401, 403, 407})
"""Statuses that mean a missing or wrong key. The words that come with them may repeat it, so they are not told."""

STREAMED = 64
"""How many times as long as its text a stream may be."""

TOLD_BYTES = 4000
"""Bytes of a refusal that are read, to tell its first words."""

PIECE = 65536
"""Bytes that are unpacked at a time, so that what is small on its way cannot fill the memory."""

# It would log every URL, and a URL may hold a key.
logging.getLogger("httpx").setLevel(logging.WARNING)

_TOO_LONG = re.compile(r"context[ _]length|context[ _]window|too many tokens|prompt is too long", re.IGNORECASE)


class Unknown(ChatbotFailed):
    """The service knows nothing at that address, such as a session that is over."""


class Sending(NamedTuple):
    """What is sent: `body` as JSON, or `parameters` in the URL."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: Any = None
    parameters: Mapping[str, Any] | None = None


class Web:
    """The connections to one chatbot's service. A client keeps cookies, so each conversation has one of its own."""

    def __init__(self, manners: Manners, keyring: Keyring) -> None:
        # With a transport of its own a client ignores HTTP_PROXY: conversations go to the named service, nowhere else.
        self._transport = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_keepalive_connections=manners.concurrency))
        self._timeout = httpx.Timeout(manners.timeout, connect=manners.connect_timeout, pool=None)
        self._limit = manners.reply_limit
        self._keyring = keyring

    def client(self) -> httpx.AsyncClient:
        """For one conversation; it holds nothing that would have to be closed."""
        return httpx.AsyncClient(transport=self._transport, timeout=self._timeout)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def json(self, client: httpx.AsyncClient, sending: Sending) -> Any:
        """The JSON that comes back."""
        async with self._answered(client, sending) as response:
            self._must_be(response, "json")
            return _parsed(await self._body(response))

    async def ignore(self, client: httpx.AsyncClient, sending: Sending) -> None:
        """Send, and see that it was accepted."""
        async with self._answered(client, sending) as response:
            await self._body(response)

    async def events(self, client: httpx.AsyncClient, sending: Sending) -> AsyncGenerator[Any]:
        """The JSON of each event of a stream, in order, and None at its end mark."""
        async with self._answered(client, sending) as response:
            self._must_be(response, "event-stream")
            async for line in self._lines(response):
                text = line.removeprefix("data:").strip() if line.startswith("data:") else ""
                if text == "[DONE]":
                    yield None
                    return
                if text:
                    yield _parsed(text.encode())

    async def status(self, client: httpx.AsyncClient, sending: Sending) -> tuple[int, bytes]:
        """The status and the body that come back, whatever they are; Fault where nothing does."""
        try:
            async with client.stream(sending.method, sending.url, headers=sending.headers) as response:
                return response.status_code, await self._body(response)
        except httpx.RequestError as error:
            raise Fault(self._keyring.hide(_reason(error))) from error

    async def reach(self, url: str) -> None:
        """UserError where nothing accepts connections at the host of `url`; nothing is sent."""
        parts = urlsplit(url)
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            async with asyncio.timeout(self._timeout.connect):
                _, writer = await asyncio.open_connection(parts.hostname, port)
        except (OSError, ValueError) as error:
            place = f"{parts.scheme}://{parts.netloc}"
            reason = str(error) or "no connection in time"
            raise UserError(f"no chatbot answers at {place} ({reason}); start it or correct the URL") from None
        writer.close()

    @asynccontextmanager
    async def _answered(self, client: httpx.AsyncClient, sending: Sending) -> AsyncIterator[httpx.Response]:
        method, url, headers, body, parameters = sending
        try:
            async with client.stream(method, url, headers=headers, json=body, params=parameters) as response:
                await self._must_be_accepted(response)
                yield response
        except httpx.RequestError as error:
            raise Fault(f"the connection failed ({self._keyring.hide(_reason(error))})") from error
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise ChatbotFailed("an id of its session fits neither a URL nor a header") from error

    async def _must_be_accepted(self, response: httpx.Response) -> None:
        status = response.status_code
        if status in BUSY or status >= 500:
            raise Fault(f"it answered with status {status}", wait_of(response.headers))
        if status in REFUSED:
            raise ChatbotFailed(f"it refuses access with status {status}; see to its key")
        if status >= 400:
            words = await self._first_words(response)
            overflow = _TOO_LONG.search(words) and status in (400, 413, 422)
            kind = ChatbotOverflow if overflow else Unknown if status in UNKNOWN else ChatbotFailed
            raise kind(f"it refused a request with status {status}: {self._keyring.told(words)}")
        if not response.is_success:
            raise ChatbotFailed(f"it answered with status {status} and no reply; correct its URL")

    async def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for chunk in _unpacked(response):
            body += chunk
            self._must_fit(len(body))
        return bytes(body)

    async def _first_words(self, response: httpx.Response) -> str:
        """Of a refusal, which is one however long it is and however it is packed."""
        body = bytearray()
        with suppress(Fault):
            async with aclosing(_unpacked(response)) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) >= TOLD_BYTES:
                        break
        return body[:TOLD_BYTES].decode(errors="replace")

    def _must_be(self, response: httpx.Response, kind: str) -> None:
        told = response.headers.get("content-type", "")
        essence = told.partition(";")[0].strip().lower()
        if not re.fullmatch(rf"[\w.-]+/([\w.-]+\+)?{kind}", essence):
            raise Fault(f"it answered with the content type '{self._keyring.told(told)[:60]}' where {kind} belongs")

    async def _lines(self, response: httpx.Response) -> AsyncIterator[str]:
        """The lines of a stream. Each event has much around its text, so that a stream may be far longer than it."""
        rest, size = b"", 0
        async for chunk in _unpacked(response):
            size += len(chunk)
            self._must_fit(size // STREAMED)
            *whole, rest = (rest + chunk).split(b"\n")
            self._must_fit(len(rest))
            for line in whole:
                yield _decoded(line)
        yield _decoded(rest)

    def _must_fit(self, size: int) -> None:
        if size > self._limit:
            raise Fault(f"its reply is larger than {self._limit} bytes")


def wait_of(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that a Retry-After asks for, given in seconds or as a date; None without one that can be read."""
    told = headers.get("retry-after", "").strip()
    if told.isascii() and told.isdigit():
        return float(told)
    try:
        moment = parsedate_to_datetime(told).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, moment - (time.time() if now is None else now))


async def _unpacked(response: httpx.Response) -> AsyncGenerator[bytes]:
    """The body, unpacked piece by piece where a service packs it although it was asked not to."""
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise Fault(f"its reply is packed as '{coding[:60]}', although it was asked not to pack it")
    # Either header is known by its first bytes.
    unpack = None if coding in ("", "identity") else zlib.decompressobj(zlib.MAX_WBITS | 32)
    async for chunk in response.aiter_raw():
        if unpack is None:
            yield chunk
            continue
        try:
            while chunk:
                yield unpack.decompress(chunk, PIECE)
                chunk = unpack.unconsumed_tail
        except zlib.error:
            raise Fault("its reply is packed in a broken way") from None


def _parsed(body: bytes) -> Any:
    text = _decoded(body)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Fault("its reply is not whole JSON") from None


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        raise Fault("its reply is not in UTF-8") from None


def _reason(error: httpx.RequestError) -> str:
    return str(error) or type(error).__name__
