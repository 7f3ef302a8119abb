"""An engine without a model, as httpx has a transport without a network. Knows only the handler it was given."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence

from vera_local.engine.seam import ChatMessage, ContextOverflow, Finish, Limits, Reply, Request, Usage

Handler = Callable[[Request], str | Reply | Awaitable[str | Reply]]


class FakeEngine:
    """Answers each request by calling `handler`, which may return text or a Reply, wait, or raise an EngineError.

    A word counts as one token. `requests` keeps what was asked, in order; `peak` the most requests held at once.
    """

    def __init__(self, handler: Handler, limits: Limits | None = None) -> None:
        self._handler = handler
        self._limits = limits or Limits(context=100_000, kv_tokens=1_000_000, sequences=256)
        self._held = 0
        self.requests: list[Request] = []
        self.peak = 0
        self.closed = False

    @property
    def limits(self) -> Limits:
        return self._limits

    async def generate(self, request: Request) -> Reply:
        self.requests.append(request)
        prompt = await self.count_tokens(request.messages)
        if prompt + request.sampling.max_tokens > self._limits.context:
            raise ContextOverflow(prompt, self._limits.context)
        self._held += 1
        self.peak = max(self.peak, self._held)
        try:
            # A real engine never answers before others had a chance to ask.
            await asyncio.sleep(0)
            answer = self._handler(request)
            answer = await answer if inspect.isawaitable(answer) else answer
        finally:
            self._held -= 1
        if isinstance(answer, Reply):
            return answer
        return Reply(answer, Finish.STOP, Usage(prompt=prompt, output=len(answer.split())))

    async def count_tokens(self, messages: Sequence[ChatMessage]) -> int:
        return sum(len(m.content.split()) + 1 for m in messages)

    async def aclose(self) -> None:
        self.closed = True
