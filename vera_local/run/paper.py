"""An engine on paper: it loads nothing, answers with what it is told to, and counts what that would cost.

Knows no role. Requests go through the code of a run, so what is counted is what a run asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import ChatMessage, ContextOverflow, Limits, Reply, Request

Write = Callable[[Request], str]

UNBOUNDED = Limits(context=2**62, kv_tokens=None, sequences=1)
KEPT = 4096
"""Texts whose length is kept; most messages turn up again in every later prompt."""


@dataclass(frozen=True, slots=True)
class Work:
    """Requests and their tokens, expected: `computed` of the `prompt` were not in the KV cache yet."""

    requests: float = 0.0
    prompt: float = 0.0
    computed: float = 0.0
    output: float = 0.0

    @property
    def cached(self) -> float:
        """Prompt tokens read from the KV cache."""
        return self.prompt - self.computed

    def __add__(self, other: Work) -> Work:
        return Work(
            self.requests + other.requests,
            self.prompt + other.prompt,
            self.computed + other.computed,
            self.output + other.output,
        )

    def __mul__(self, times: float) -> Work:
        return Work(self.requests * times, self.prompt * times, self.computed * times, self.output * times)


NO_WORK = Work()


@dataclass(frozen=True)
class Ruler:
    """Measures texts in tokens: `measure` a text alone, `frame` what a template writes around each message, `opening`
    what it begins an answer with, `end` what ends one. `told` says how, in words for a reader."""

    measure: Callable[[str], int]
    frame: float
    told: str
    opening: float = 0.0
    end: int = 1

    def text_of(self, tokens: int) -> str:
        """A meaningless text of about so many tokens."""
        word = " word"
        found = self.measure(word * tokens)
        return (word * max(1, round(tokens * tokens / max(1, found)))).strip()


CHARACTERS = 4
BY_CHARACTERS = Ruler(
    lambda text: math.ceil(len(text) / CHARACTERS), 4.0, f"{CHARACTERS} characters are one token", opening=4.0
)


class Paper:
    """Answers each request with what `write` says, as FakeEngine takes it, in a context of `context` tokens.

    A prompt's beginning is in the cache where the request before it in the conversation, the conversation's first one
    or the first one of the conversation before began with it. `held` is the longest sequence of the conversation.
    """

    def __init__(self, ruler: Ruler, context: int, write: Write = lambda request: "") -> None:
        self.write = write
        self.held = 0.0
        self._measure = lru_cache(KEPT)(ruler.measure)
        self._ruler = ruler
        self._limits = replace(UNBOUNDED, context=context)
        self._inner = FakeEngine(lambda request: self.write(request), UNBOUNDED)
        self._work = NO_WORK
        self._before = self._first = self._last = ""

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def markers(self) -> tuple[str, ...]:
        return ()

    def begin(self) -> None:
        """Another conversation."""
        self._before, self._first, self._last, self.held = self._first or self._before, "", "", 0.0

    def here(self) -> tuple[str, str, str]:
        """What is in the cache now."""
        return self._before, self._first, self._last

    def back(self, cache: tuple[str, str, str]) -> None:
        """As if nothing had been asked since `here` told this."""
        self._before, self._first, self._last = cache

    def take(self) -> Work:
        """What was asked since it was last taken."""
        work, self._work = self._work, NO_WORK
        return work

    async def count_tokens(self, messages: Sequence[ChatMessage], *, thinking: bool = False) -> int:
        framed = sum(self._measure(m.content) + self._ruler.frame for m in messages)
        return round(framed + self._ruler.opening) + thinking

    async def tokens(self, text: str) -> tuple[int, ...]:
        """Of the text's words: the number of such ids is no length."""
        return await self._inner.tokens(text)

    async def generate(self, request: Request) -> Reply:
        begun = self._inner.text(request.begun)
        prompt = await self.count_tokens(request.messages, thinking=request.thinking) + self._length(begun)
        if prompt + request.sampling.max_tokens > self._limits.context:
            raise ContextOverflow(prompt, self._limits.context)
        # Its own count of the prompt is of no use here.
        reply = await self._inner.generate(replace(request, messages=request.messages[-1:]))
        output = 1 if request.labels else self._written(reply, request)
        self._count(f"{_text(request)}{begun}", reply.text, prompt, output)
        return reply

    async def aclose(self) -> None:
        return None

    def _written(self, reply: Reply, request: Request) -> int:
        """Tokens of an answer: what ends it counts, too, be it the model's own end or the request's."""
        return self._length(f"{reply.text}{request.stop}") + (0 if request.stop else self._ruler.end)

    def _length(self, text: str) -> int:
        return self._measure(text) if text else 0

    def _count(self, sequence: str, reply: str, prompt: int, output: int) -> None:
        shared = max(_shared(sequence, known) for known in (self._before, self._first, self._last))
        computed = max(1.0, prompt * (1 - shared / len(sequence)))
        self._work += Work(1, prompt, computed, output)
        self._first = self._first or sequence
        self._last = f"{sequence}{reply}"
        self.held = max(self.held, prompt + output)


def _text(request: Request) -> str:
    """The prompt as one text, up to where the answer begins."""
    history = "".join(f"{m.role}\x1f{m.content}\x1e" for m in request.messages)
    return f"{history}assistant\x1f"


def _shared(one: str, other: str) -> int:
    """Characters with which both begin."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low
