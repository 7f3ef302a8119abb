"""What happens when messages outgrow a model's context. Knows no conversation: messages are those of chat templates."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from vera_local.engine.seam import ContextOverflow, Engine, Reply, Request

PAIRS = 4
"""Pairs are left out so many at a time, so that the prompt's beginning, and its KV cache, stay the same for a while."""


class Context(StrEnum):
    """What is done when a history no longer fits."""

    STOP = "stop"
    """No reply: ContextOverflow."""
    WINDOW = "window"
    """The oldest messages behind the first ones are left out."""


async def generate_within(engine: Engine, request: Request, policy: Context, head: int) -> tuple[Reply, int]:
    """The reply to a request, and how many of its messages were left out for it.

    `head` leading messages and the last one stay; pairs of messages go, so that the roles still take turns. Raises
    ContextOverflow where it does not fit even so, or at once with STOP.
    """
    if policy is Context.STOP:
        return await engine.generate(request), 0
    most = max(0, (len(request.messages) - head - 1) // 2)
    pairs = await _fewest(engine, request, head, most)
    while True:
        try:
            return await engine.generate(_without(request, head, pairs)), 2 * pairs
        except ContextOverflow:
            # Not every host counts as it reads.
            if pairs >= most:
                raise
            pairs = min(most, pairs + PAIRS)


async def _fewest(engine: Engine, request: Request, head: int, most: int) -> int:
    """How many pairs have to go by the engine's count, in steps of `PAIRS`; `most` where that may not be enough."""
    steps: list[int] = [*range(0, most, PAIRS), most]
    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        if await _fits(engine, _without(request, head, steps[middle])):
            high = middle
        else:
            low = middle + 1
    return steps[low]


async def _fits(engine: Engine, request: Request) -> bool:
    prompt = await engine.count_tokens(request.messages, thinking=request.thinking)
    return prompt + len(request.begun) + request.sampling.max_tokens <= engine.limits.context


def _without(request: Request, head: int, pairs: int) -> Request:
    messages = request.messages
    return replace(request, messages=(*messages[:head], *messages[head + 2 * pairs :]))
