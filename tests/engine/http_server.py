"""A server of the OpenAI kind that is none: answers by path, and keeps what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from vera_local.engine.openai import OpenAIEngine
from vera_local.engine.profile import EngineOptions, Profile, PromptedRole, Role, Roles, Source, Template
from vera_local.engine.seam import ChatMessage, Sampling
from vera_local.engine.server import Address
from vera_local.errors import UserError

URL = "http://gpu-box:8000/v1"
SECRET = "sk-very-secret"
MESSAGES = (ChatMessage("system", "be kind"), ChatMessage("user", "hello"))
SAMPLING = Sampling(temperature=0.7, top_p=0.9, max_tokens=40, seed=123, repetition_penalty=1.1)
PLAIN = Template(system_role=True, thinking="none")
MODELS = {"data": [{"id": "org/own", "max_model_len": 1000}]}
CHAT, COUNT, LIST = "/v1/chat/completions", "/tokenize", "/v1/models"

Handler = Callable[[httpx.Request], httpx.Response]


class Server(httpx.AsyncBaseTransport):
    """Answers by path: what to send, or a handler; keeps the requests and whether its client was closed."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {LIST: MODELS, COUNT: {"count": 10}, CHAT: completion()} | answers
        self.requests: list[httpx.Request] = []
        self.closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers[request.url.path]
        if callable(answer):
            answer = answer(request)
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)

    async def aclose(self) -> None:
        self.closed = True

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [json.loads(r.content) for r in self.requests if r.url.path == path]


def completion(text: str | None = "good day", finish: str = "stop", **usage: Any) -> dict[str, Any]:
    counted = {"prompt_tokens": 12, "completion_tokens": 3} | usage
    return {"choices": [{"message": {"content": text}, "finish_reason": finish}], "usage": counted}


def profile(template: Template = PLAIN, name: str = "own", hub: str = "org/own") -> Profile:
    prompted = PromptedRole(temperature=0, top_p=1, max_tokens=10)
    return Profile(
        name=name,
        title="Own",
        licence="MIT",
        weight_gb=1,
        kv_bytes_per_token=1,
        context=4096,
        source=Source(hub=hub),
        engine=EngineOptions(dtype="auto"),
        template=template,
        roles=Roles(simulator=prompted, chatbot=Role(temperature=0, top_p=1, max_tokens=10), judge=prompted),
    )


async def opened(server: Server, template: Template = PLAIN, key: str | None = None) -> OpenAIEngine:
    return await OpenAIEngine.open(profile(template), Address(URL), key, server)


async def refusal(server: Server, key: str | None = None, url: str = URL) -> str:
    """The sentence with which opening fails, which leaves nothing open behind it."""
    with pytest.raises(UserError) as caught:
        await OpenAIEngine.open(profile(), Address(url), key, server)
    told = str(caught.value)
    assert "\n" not in told
    assert server.closed or not server.requests
    return told


def status(code: int, text: str = "") -> Handler:
    return lambda _: httpx.Response(code, text=text)


def broken(error: Exception | type[BaseException]) -> Handler:
    def fail(_: httpx.Request) -> httpx.Response:
        raise error

    return fail


def in_turn(*handlers: Any) -> Handler:
    left = list(handlers)

    def answer(request: httpx.Request) -> httpx.Response:
        handler = left.pop(0) if len(left) > 1 else left[0]
        return handler(request) if callable(handler) else httpx.Response(200, json=handler)

    return answer
