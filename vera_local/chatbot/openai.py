"""A chatbot behind chat completions, whoever's they are. Knows nothing that only one server offers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

import httpx

from vera_local.chatbot.keyring import Keyring
from vera_local.chatbot.local import seen_by_chatbot
from vera_local.chatbot.manners import Fault
from vera_local.chatbot.protocol import Answer
from vera_local.chatbot.settings import OpenAISettings
from vera_local.chatbot.template import mapped_texts
from vera_local.chatbot.web import REFUSED, Sending, Web
from vera_local.conversation import Message
from vera_local.engine.completion import MOST, text_of
from vera_local.engine.seam import Usage
from vera_local.errors import UserError

LISTING_SECONDS = 30.0
"""Time for a server to list its models, which costs no model anything."""

STATED = ("temperature", "top_p", "repetition_penalty", "max_tokens")
"""Settings that are sent where they are set."""


class OpenAIKind:
    """One served model. `aliases`: further names that the server may have for it."""

    def __init__(
        self, settings: OpenAISettings, keyring: Keyring, system_prompt: str, aliases: Sequence[str] = ()
    ) -> None:
        self._settings = settings
        self._keyring = keyring
        self._system_prompt = system_prompt
        self._names = (settings.model, *aliases)
        self._model = settings.model
        self._web = Web(settings, keyring)
        self._extra = mapped_texts(settings.extra, keyring.fill_whole)
        self._base = keyring.fill(settings.url).rstrip("/")

    @property
    def remembers(self) -> bool:
        return False

    @property
    def places(self) -> int | None:
        return None

    async def check(self) -> None:
        """As `Chatbot.check`; a server that does not list its models is believed."""
        served = await self._served(self._base)
        if served is None:
            if await self._served(f"{self._base}/v1") is not None:
                raise UserError(f"{self._base} is not where the server offers its models; add /v1 to the base URL")
            return
        chosen = next((name for name in self._names if name in served), None)
        if chosen is None:
            names = ", ".join(served) or "no model"
            raise UserError(f"the server at {self._base} serves {names}, not {self._names[0]}; name one that it serves")
        self._model = chosen

    async def begin(self) -> OpenAILine:
        return OpenAILine(self._web.client(), self)

    async def aclose(self) -> None:
        await self._web.aclose()

    async def answer(self, client: httpx.AsyncClient, history: Sequence[Message], seed: int) -> Answer:
        """One try."""
        sending = Sending("POST", f"{self._base}/chat/completions", self._headers(), self._body(history, seed))
        if self._settings.stream:
            return await self._streamed(client, sending)
        return _whole(await self._web.json(client, sending))

    async def _streamed(self, client: httpx.AsyncClient, sending: Sending) -> Answer:
        texts: list[str] = []
        usage, end, whole = Usage(), None, False
        async with aclosing(self._web.events(client, sending)) as events:
            async for event in events:
                if event is None:
                    whole = True
                    break
                text, ended, counted = _piece(event)
                texts.append(text)
                end, usage = ended or end, counted or usage
        if not (whole or end):
            raise Fault("its stream broke off before the end")
        return Answer("".join(texts), usage, end == "length")

    def _headers(self) -> dict[str, str]:
        name = self._settings.key_env
        key = {} if name is None else {"Authorization": f"Bearer {self._keyring.value(name)}"}
        return {"Accept-Encoding": "identity"} | key

    def _body(self, history: Sequence[Message], seed: int) -> dict[str, Any]:
        s, prompt = self._settings, self._system_prompt
        told = [{"role": "system", "content": prompt}] if prompt else []
        stated = {name: value for name in STATED if (value := getattr(s, name)) is not None}
        return {
            "model": self._model,
            "messages": told + [asdict(seen_by_chatbot(m)) for m in history],
            **stated,
            **({"seed": seed} if s.send_seed else {}),
            **({"stream": True} if s.stream else {}),
            **self._extra,
        }

    async def _served(self, base: str) -> list[str] | None:
        """The names of the server's models; None where it has no such list. UserError where it is not ready."""
        sending = Sending("GET", f"{base}/models", self._headers())
        try:
            async with asyncio.timeout(LISTING_SECONDS):
                status, body = await self._web.status(self._web.client(), sending)
        except (Fault, TimeoutError) as error:
            reason = str(error) or "no answer in time"
            raise UserError(f"no server answers at {self._base} ({reason}); start it or correct the base URL") from None
        if status in REFUSED:
            raise UserError(f"the server at {self._base} refuses access (status {status}); see to key_env")
        if status >= 500:
            raise UserError(f"the server at {self._base} is not ready (status {status}); try again when it is")
        return _listed(body)


class OpenAILine:
    """One conversation. The server keeps nothing of it."""

    def __init__(self, client: httpx.AsyncClient, kind: OpenAIKind) -> None:
        self._client = client
        self._kind = kind

    async def ask(self, history: Sequence[Message], seed: int) -> Answer:
        return await self._kind.answer(self._client, history, seed)

    async def end(self) -> None:
        return None


def _listed(body: bytes) -> list[str] | None:
    try:
        return [str(model["id"]) for model in json.loads(body)["data"]]
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _whole(came: Any) -> Answer:
    try:
        choice = came["choices"][0]
        text = text_of(choice["message"].get("content"))
        return Answer(text, _usage(came.get("usage")) or Usage(), choice.get("finish_reason") == "length")
    except (AttributeError, KeyError, IndexError, TypeError):
        raise Fault("its reply is no chat completion") from None


def _piece(event: Any) -> tuple[str, str | None, Usage | None]:
    """The text of one event of a stream, why the answer ended with it, and what it counts, where it says so."""
    try:
        if event.get("error"):
            raise Fault("it reported an error in the middle of its stream")
        usage = _usage(event.get("usage"))
        if not event["choices"]:
            return "", None, usage
        choice = event["choices"][0]
        return text_of(choice["delta"].get("content")), choice.get("finish_reason"), usage
    except (AttributeError, KeyError, IndexError, TypeError):
        raise Fault("its stream is not one of chat completions") from None


def _usage(told: Any) -> Usage | None:
    """What a server counted; None where it did not."""
    if not isinstance(told, Mapping):
        return None
    details = told.get("prompt_tokens_details") or {}
    counts = told.get("prompt_tokens"), details.get("cached_tokens"), told.get("completion_tokens")
    return Usage(*(n if isinstance(n, int) and 0 <= n < MOST else 0 for n in counts))
