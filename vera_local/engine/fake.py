"""An engine without a model, as httpx has a transport without a network. Knows only the handler it was given."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from vera_local.engine.labels import check_labels
from vera_local.engine.seam import ChatMessage, ContextOverflow, Finish, Limits, Reply, Request, Usage

Handler = Callable[[Request], str | Reply | Awaitable[str | Reply]]

NEVER = -1e9
"""Log-probability of what the handler did not say."""


class FakeEngine:
    """Answers each request by calling `handler`, which may return text or a Reply, wait, or raise an EngineError.

    A word with the blanks before it is a token, and so is each of the `markers`; ids are given as words turn up, so
    that `text` and `tokens` undo each other. A text that holds the request's `stop` ends before it. To a request with
    labels a text is the whole answer, of which `begun` may already hold the beginning: its next token has
    probability 1. A Reply is given as it is, with the tokens of its text where it has none.
    `requests` keeps what was asked, in order; `peak` the most requests held at once.

    A `light` one costs next to nothing itself, for measuring what is around it: four characters of a prompt count as a
    token, and no request is kept; `asked` counts them in any case.
    """

    def __init__(
        self, handler: Handler, limits: Limits | None = None, markers: Sequence[str] = (), *, light: bool = False
    ) -> None:
        self._handler = handler
        self._light = light
        self._limits = limits or Limits(context=100_000, kv_tokens=1_000_000, sequences=256)
        self._markers = tuple(markers)
        self._words: list[str] = []
        self._ids: dict[str, int] = {}
        self._held = 0
        self.requests: list[Request] = []
        self.asked = 0
        self.peak = 0
        self.closed = False

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def markers(self) -> tuple[str, ...]:
        return self._markers

    async def generate(self, request: Request) -> Reply:
        self.asked += 1
        if not self._light:
            self.requests.append(request)
        check_labels(request)
        prompt = await self.count_tokens(request.messages, thinking=request.thinking) + len(request.begun)
        if prompt + request.sampling.max_tokens > self._limits.context:
            raise ContextOverflow(prompt, self._limits.context)
        answer = await self._answer(request)
        if isinstance(answer, Reply):
            if self._light:
                return answer
            return replace(answer, tokens=answer.tokens or self._encode(answer.text))
        return self._read(answer, request, prompt) if request.labels else self._write(answer, request, prompt)

    async def count_tokens(self, messages: Sequence[ChatMessage], *, thinking: bool = False) -> int:
        """Words and one more per message; permission to think is one, too."""
        if self._light:
            return sum(len(m.content) for m in messages) // 4 + len(messages) + thinking
        return sum(len(m.content.split()) + 1 for m in messages) + thinking

    async def tokens(self, text: str) -> tuple[int, ...]:
        return self._encode(text)

    def text(self, ids: Sequence[int]) -> str:
        """The text of ids that this engine gave, such as a request's `begun`."""
        return "".join(self._words[i] for i in ids)

    async def aclose(self) -> None:
        self.closed = True

    async def _answer(self, request: Request) -> str | Reply:
        self._held += 1
        self.peak = max(self.peak, self._held)
        try:
            # A real engine never answers before others had a chance to ask.
            await asyncio.sleep(0)
            answer = self._handler(request)
            return await answer if inspect.isawaitable(answer) else answer
        finally:
            self._held -= 1

    def _write(self, text: str, request: Request, prompt: int) -> Reply:
        before, mark, _ = text.partition(request.stop) if request.stop else (text, "", "")
        tokens = self._encode(before)
        usage = Usage(prompt=prompt, output=len(f"{before}{mark}".split()))
        return Reply(before, Finish.MARK if mark else Finish.STOP, usage, tokens=tokens)

    def _read(self, text: str, request: Request, prompt: int) -> Reply:
        answer = self._encode(text)
        said = next(k for k in range(len(answer), -1, -1) if k == 0 or request.begun[-k:] == answer[:k])
        following = answer[said : said + 1]
        labels = {label: 0.0 if (label,) == following else NEVER for label in request.labels}
        finish = Finish.LENGTH if following else Finish.STOP
        return Reply(self.text(following), finish, Usage(prompt=prompt, output=1), labels, following)

    def _encode(self, text: str) -> tuple[int, ...]:
        parts = re.split(f"({'|'.join(map(re.escape, self._markers))})", text) if self._markers else [text]
        words = [w for p in parts for w in ([p] if p in self._markers else re.findall(r"\s*\S+|\s+$", p))]
        return tuple(self._id(word) for word in words)

    def _id(self, word: str) -> int:
        if word not in self._ids:
            self._ids[word] = len(self._words)
            self._words.append(word)
        return self._ids[word]
