"""A chatbot behind any service that speaks JSON. Knows what its settings say of that service and nothing more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx

from vera_local.chatbot.keyring import Keyring
from vera_local.chatbot.manners import Fault
from vera_local.chatbot.protocol import Answer, ChatbotFailed, ChatbotLost
from vera_local.chatbot.settings import Call, HttpSettings
from vera_local.chatbot.template import at, filled, mapped_texts
from vera_local.chatbot.web import Sending, Unknown, Web
from vera_local.conversation import Message, Speaker

END_SECONDS = 2.0
"""Time for the call that ends a conversation: nothing depends on it."""


class HttpKind:
    """One service."""

    def __init__(self, settings: HttpSettings, keyring: Keyring) -> None:
        self.settings = settings
        self.web = Web(settings, keyring)
        self._keyring = keyring

    @property
    def remembers(self) -> bool:
        return not self.settings.sends_history

    @property
    def places(self) -> int | None:
        return None

    async def check(self) -> None:
        for call in (self.settings, self.settings.start, self.settings.end):
            if call is not None:
                self.sending(call, {"session": ""})
        await self.web.reach(self._keyring.fill(self.settings.url).partition("{")[0])

    async def begin(self) -> HttpLine:
        line = HttpLine(self)
        await line.start()
        return line

    async def aclose(self) -> None:
        await self.web.aclose()

    def told(self, error: Any) -> str:
        """What the service says of an error, fit to tell."""
        return self._keyring.told(error if isinstance(error, str) else json.dumps(error))

    def sending(self, call: Call, values: dict[str, Any]) -> Sending:
        """A call with everything filled in; raises UserError where the environment lacks a key."""
        session = "" if values["session"] is None else str(values["session"])
        headers = {"Accept-Encoding": "identity"} | self.settings.headers | call.headers
        # Keys first: what a session or a message holds is never taken for the name of one.
        headers = {name: self._keyring.fill(text).replace("{session}", session) for name, text in headers.items()}
        url = self._keyring.fill(call.url).replace("{session}", quote(session, safe=""))
        request = filled(mapped_texts(call.request, self._keyring.fill_whole), values)
        bodiless = call.method in ("GET", "DELETE")
        return Sending(call.method, url, headers, None if bodiless else request, request if bodiless else None)


class HttpLine:
    """One conversation: its client, and the id by which the service knows it."""

    def __init__(self, kind: HttpKind) -> None:
        self._kind = kind
        self._settings = kind.settings
        self._client: httpx.AsyncClient = kind.web.client()
        self._own = str(uuid4())
        told = self._settings.session or (self._settings.start and self._settings.start.session)
        self._session: Any = None if told else self._own
        self._known = False
        """Whether the service has replied in it."""

    async def start(self) -> None:
        """The call that begins it, where there is one."""
        call = self._settings.start
        if call is None:
            return
        sending = self._kind.sending(call, {"session": self._session})
        if call.session is None:
            await self._kind.web.ignore(self._client, sending)
        else:
            self._session = _scalar(
                _found(await self._kind.web.json(self._client, sending), call.session), call.session
            )

    async def ask(self, history: Sequence[Message], seed: int) -> Answer:
        came = await self._asked(self._kind.sending(self._settings, self._values(history, seed)))
        text = _found(came, self._settings.reply)
        if text is not None and not isinstance(text, str):
            raise Fault(f"what it has at {self._settings.reply} is no text")
        if not text and isinstance(came, dict) and came.get("error"):
            raise Fault(f"it reported an error: {self._kind.told(came['error'])}")
        path = self._settings.session
        if path and self._session is None:
            self._session = _scalar(_found(came, path), path)
        self._known = True
        return Answer(text or "")

    async def _asked(self, sending: Sending) -> Any:
        try:
            return await self._kind.web.json(self._client, sending)
        except Unknown as error:
            if self._known and self._kind.remembers:
                raise ChatbotLost(f"{error}; it has lost this conversation") from error
            raise

    async def end(self) -> None:
        if self._settings.end is None or self._session is None:
            return
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._kind.web.ignore(
                    self._client, self._kind.sending(self._settings.end, {"session": self._session})
                )
        except TimeoutError:
            raise Fault("it did not end the conversation") from None

    def _values(self, history: Sequence[Message], seed: int) -> dict[str, Any]:
        items = [self._item(m) for m in history]
        return {
            "message": history[-1].text,
            "session": self._session,
            "history": items,
            "earlier": items[:-1],
            "turn": len(history),
            # The same for each try of one message: by it a service can tell a repeated request from a new one.
            "message_id": f"{self._own}:{len(history)}:{seed}",
            "seed": seed,
        }

    def _item(self, message: Message) -> Any:
        persona = message.speaker is Speaker.PERSONA
        role = self._settings.user_role if persona else self._settings.chatbot_role
        return filled(self._settings.history_item, {"role": role, "text": message.text})


def _found(came: Any, path: str) -> Any:
    try:
        return at(came, path)
    except LookupError as error:
        raise Fault(f"its reply is not as agreed: {error}") from None


def _scalar(value: Any, path: str) -> Any:
    if not isinstance(value, str | int):
        raise ChatbotFailed(f"what it has at {path} is no id of a session")
    return value
