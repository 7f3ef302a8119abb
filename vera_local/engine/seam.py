"""The seam between this project and any host of a language model. Knows nothing clinical and no particular engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message in the words of chat templates."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. Always explicit: a model's own generation_config is never read.

    `max_tokens` counts generated tokens; `temperature` 0 is greedy; `repetition_penalty` above 1 makes tokens that the
    prompt or the answer already holds less likely; `seed` belongs to this request alone.
    """

    temperature: float
    top_p: float
    max_tokens: int
    seed: int
    repetition_penalty: float = 1.0


@dataclass(frozen=True, slots=True)
class Draw:
    """How a role draws its tokens, before a request has its own seed."""

    temperature: float
    top_p: float
    max_tokens: int
    repetition_penalty: float = 1.0

    def seeded(self, seed: int) -> Sampling:
        """The sampling of one request."""
        return Sampling(self.temperature, self.top_p, self.max_tokens, seed, self.repetition_penalty)


@dataclass(frozen=True, slots=True)
class Request:
    """One generation. `pattern` is a regular expression that what is generated must match, None for free text.

    `labels` are token ids whose log-probabilities at the first generated position are wanted (no pattern then; they
    are the model's own, before temperature, top_p or a penalty). `begun` are token ids that the answer already begins
    with: generation goes on behind them, and the reply holds only what is new. `thinking` lets a model reason first
    that its template can keep from it. `stop` is a text that ends generation when it is written; the reply leaves it
    out. It may be a control token of the model.
    """

    messages: tuple[ChatMessage, ...]
    sampling: Sampling
    pattern: str | None = None
    labels: tuple[int, ...] = ()
    begun: tuple[int, ...] = ()
    thinking: bool = False
    stop: str = ""


class Finish(StrEnum):
    """Why generation ended."""

    STOP = "stop"
    """The model ended its answer."""
    MARK = "mark"
    """The request's `stop` was written."""
    LENGTH = "length"
    """All `max_tokens` were used."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or several requests: prompt (of which `cached` were read from the KV cache) and output."""

    prompt: int = 0
    cached: int = 0
    output: int = 0

    @property
    def computed(self) -> int:
        """Prompt tokens that had to be prefilled."""
        return self.prompt - self.cached

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.prompt + other.prompt, self.cached + other.cached, self.output + other.output)


NO_USAGE = Usage()
"""Nothing asked yet."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `label_logprobs` maps each wanted token id to its natural-log probability.

    `tokens` are the ids of `text`, without the token that ended it, fit for `begun` of a further request.
    """

    text: str
    finish: Finish
    usage: Usage
    label_logprobs: dict[int, float] = field(default_factory=dict)
    tokens: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """What an engine can hold: `context` tokens in one sequence, `kv_tokens` over all (None: unknown),
    `sequences` generating at once, the `block` of tokens its prefix cache works in, and the `ridge`: how many tokens a
    step computes in about the time that it takes for one, so that a batch narrower than that can be widened almost
    for nothing."""

    context: int
    kv_tokens: int | None
    sequences: int
    block: int = 1
    ridge: int = 1

    def kept(self, tokens: int | None) -> int:
        """What a sequence of so many tokens keeps in the KV cache, in tokens of whole blocks, at most a whole context;
        0 where the engine does not tell its cache, since nothing is then bounded by it, or where the tokens are
        not known."""
        if self.kv_tokens is None or tokens is None:
            return 0
        return (min(tokens, self.context) // self.block + 1) * self.block


class Engine(Protocol):
    """Hosts one model."""

    @property
    def limits(self) -> Limits:
        """Known once the engine is open."""
        ...

    async def generate(self, request: Request) -> Reply:
        """Answer one request; raises an EngineError that concerns this request alone (EngineDied: all)."""
        ...

    @property
    def markers(self) -> tuple[str, ...]:
        """Texts that the model reads as its own control tokens or role markers wherever they stand in a prompt."""
        ...

    async def count_tokens(self, messages: Sequence[ChatMessage], *, thinking: bool = False) -> int:
        """Length in tokens of the prompt that `generate` would send, generation prompt included."""
        ...

    async def tokens(self, text: str) -> tuple[int, ...]:
        """The ids of `text` where it begins an answer or goes on with one, control tokens in it read as such."""
        ...

    async def aclose(self) -> None:
        """Free the model; ends every process that the engine started."""
        ...


class EngineError(Exception):
    """A request that gave no reply."""


class ContextOverflow(EngineError):
    """The prompt and the tokens to generate do not fit the context."""

    def __init__(self, prompt_tokens: int, context: int) -> None:
        super().__init__(f"the prompt of {prompt_tokens} tokens leaves no room in the context of {context}")
        self.prompt_tokens = prompt_tokens
        self.context = context


class InvalidRequest(EngineError):
    """The engine refuses the request as it is; asking again will not help."""


class Refused(EngineError):
    """A filter of the host kept the model's answer back."""


class EngineDied(EngineError):
    """The engine is gone: no request to it will be answered any more."""


class EngineLost(EngineDied):
    """It is one of ours, and opened anew it can work again."""
