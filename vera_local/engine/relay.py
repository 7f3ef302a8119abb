"""An engine that stands before another one and asks that one. Knows not why it stands there."""

from __future__ import annotations

from collections.abc import Sequence

from vera_local.engine.seam import ChatMessage, Engine, Limits, Reply, Request


class Relay:
    """All goes straight through; whoever derives from it changes what is to be different."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def limits(self) -> Limits:
        return self._engine.limits

    @property
    def markers(self) -> tuple[str, ...]:
        return self._engine.markers

    async def generate(self, request: Request) -> Reply:
        return await self._engine.generate(request)

    async def count_tokens(self, messages: Sequence[ChatMessage], *, thinking: bool = False) -> int:
        return await self._engine.count_tokens(messages, thinking=thinking)

    async def tokens(self, text: str) -> tuple[int, ...]:
        return await self._engine.tokens(text)

    async def aclose(self) -> None:
        await self._engine.aclose()
