"""The answers of an OpenAI-compatible server, read. Knows no connection and no request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from vera_local.engine.seam import EngineError, Finish, Refused, Reply, Usage

FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH}
"""How a server names the end of an answer."""


MOST = 2**31
"""Tokens that no request has; a store could not add up what is far beyond."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What vLLM wrote behind token ids: `tokens` with the one that ended it, `stopped_by` a stop text or token."""

    text: str
    finish: Finish
    stopped_by: str | int | None
    tokens: tuple[int, ...]
    labels: dict[int, float]
    usage: Usage


def chat_reply(answer: Mapping[str, Any]) -> Reply:
    """The message of a chat completion; Refused where the server kept it back. Tokens only where it tells them."""
    with _reading("a chat completion"):
        choice = answer["choices"][0]
        message = choice["message"]
        if choice["finish_reason"] == "content_filter" or message.get("refusal"):
            # Not in the model's words: they are part of what was said.
            why = "its model refused" if message.get("refusal") else "content filter"
            raise Refused(f"the server kept the answer back ({why})")
        finish = FINISHES[choice["finish_reason"]]
        # Reasoning that the server split off is in the tokens and not in the text.
        told = () if message.get("reasoning") or message.get("reasoning_content") else choice.get("token_ids") or ()
        tokens = tuple(map(int, told[:-1] if finish is Finish.STOP else told))
        return Reply(whole(text_of(message["content"])), finish, _usage(answer), tokens=tokens)


def completion(answer: Mapping[str, Any], labels: Sequence[int]) -> Completion:
    """A completion of token ids, with the log-probabilities of `labels` at its first position."""
    with _reading("a completion by vLLM"):
        choice = answer["choices"][0]
        first = choice["logprobs"]["top_logprobs"][0] if labels else {}
        return Completion(
            whole(text_of(choice["text"])),
            FINISHES[choice["finish_reason"]],
            choice.get("stop_reason"),
            tuple(map(int, choice["token_ids"])),
            {label: float(first[f"token_id:{label}"]) for label in labels},
            _usage(answer),
        )


@contextmanager
def _reading(kind: str) -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise EngineError(f"the server's answer lacks what {kind} has ({error!r})") from error


def _usage(answer: Mapping[str, Any]) -> Usage:
    usage = answer["usage"]
    details = usage.get("prompt_tokens_details") or {}
    counts = usage["prompt_tokens"], details.get("cached_tokens") or 0, usage["completion_tokens"]
    if not all(0 <= int(count) < MOST for count in counts):
        raise ValueError("a number of tokens that no request has")
    return Usage(*map(int, counts))


def text_of(content: Any) -> str:
    """The text of a message; None stands for an empty one."""
    if content is not None and not isinstance(content, str):
        raise TypeError("the content is no text")
    return content or ""


def whole(text: str) -> str:
    """`text` as it is; EngineError where it holds half of a surrogate pair: no file and no request can hold that."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise EngineError("the server's answer holds half of a surrogate pair") from None
    return text
