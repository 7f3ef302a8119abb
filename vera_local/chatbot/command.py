"""A chatbot that is a program: a line of JSON in, a line of JSON out. Knows nothing of what runs in it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import uuid4

from vera_local.chatbot.keyring import Keyring
from vera_local.chatbot.local import seen_by_chatbot
from vera_local.chatbot.manners import Fault
from vera_local.chatbot.process import Gone, Process
from vera_local.chatbot.protocol import Answer, ChatbotLost
from vera_local.chatbot.settings import CommandSettings
from vera_local.conversation import Message
from vera_local.errors import UserError

ESCAPED = 8
"""How many times as long as its text a line of JSON may be."""


class CommandKind:
    """One program, with a process for each conversation or one for all."""

    def __init__(self, settings: CommandSettings, keyring: Keyring) -> None:
        # The program reads its keys by itself, and its last words are told.
        keyring.watch()
        self._settings = settings
        self._keyring = keyring
        self._shared = Desk(settings, keyring) if settings.shared else None

    @property
    def remembers(self) -> bool:
        return self._settings.remembers

    @property
    def places(self) -> int | None:
        return None if self._settings.shared else self._settings.concurrency

    async def check(self) -> None:
        program = self._settings.command[0]
        if shutil.which(program) is None:
            raise UserError(f"chatbot command: there is no program {program}; correct the command")

    async def begin(self) -> CommandLine:
        return CommandLine(self._shared or Desk(self._settings, self._keyring), self._settings, self._keyring)

    async def aclose(self) -> None:
        if self._shared is not None:
            await self._shared.close()


class Desk:
    """One process at a time, with one request at a time; started when it is needed, and again when it is gone."""

    def __init__(self, settings: CommandSettings, keyring: Keyring) -> None:
        self._settings = settings
        self._keyring = keyring
        self._process: Process | None = None
        self._free = asyncio.Lock()
        self.number = 0
        """Counts the processes that were started."""
        self.why = ""
        """How the last one was lost."""

    def holds(self, number: int) -> bool:
        """Whether the process of that number is still there."""
        return self._process is not None and self.number == number

    async def exchange(self, request: Mapping[str, Any]) -> Any:
        """The JSON that a line is answered with; Fault where it is none, Gone where the process is lost."""
        async with self._free:
            try:
                return await (await self._running()).exchange(request)
            except Gone as gone:
                await self._lose(str(gone))
                raise
            except asyncio.CancelledError:
                # What it would still write answers a request that nobody waits for any more.
                await self._lose(f"it gave no whole reply within {self._settings.timeout:g} s")
                raise

    async def close(self) -> None:
        """End the process, by force where it does not end by itself."""
        process, self._process = self._process, None
        if process is not None:
            await process.close()

    async def _running(self) -> Process:
        if self._process is None:
            limit = ESCAPED * self._settings.reply_limit
            self._process = await Process.start(self._settings.command, limit, self._keyring.told)
            self.number += 1
        return self._process

    async def _lose(self, why: str) -> None:
        process, self._process, self.why = self._process, None, why
        if process is not None:
            await process.kill()


class CommandLine:
    """One conversation. Where the program remembers it, it is lost with its process."""

    def __init__(self, desk: Desk, settings: CommandSettings, keyring: Keyring) -> None:
        self._desk = desk
        self._settings = settings
        self._keyring = keyring
        self._session = str(uuid4())
        self._process: int | None = None

    async def ask(self, history: Sequence[Message], seed: int) -> Answer:
        if self._settings.remembers and self._process is not None and not self._desk.holds(self._process):
            raise ChatbotLost(f"{self._desk.why}, and this conversation is lost with its process")
        request = {
            "session": self._session,
            "message": history[-1].text,
            "history": [asdict(seen_by_chatbot(m)) for m in history],
            "turn": len(history),
            "seed": seed,
        }
        answer = self._answer(await self._desk.exchange(request))
        self._process = self._desk.number
        return answer

    async def end(self) -> None:
        if not self._settings.shared:
            await self._desk.close()

    def _answer(self, came: Any) -> Answer:
        if isinstance(came, dict) and isinstance(came.get("reply"), str):
            return Answer(came["reply"])
        if isinstance(came, dict) and "error" in came:
            raise Fault(f"it reported an error: {self._keyring.told(str(came['error']))}")
        raise Fault('its reply is no {"reply": "text"}')
