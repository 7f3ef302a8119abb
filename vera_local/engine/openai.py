"""An OpenAI-compatible server that somebody else runs, as `vllm serve` does. Knows no model files and no GPU."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

import httpx

from vera_local.engine.profile import Profile
from vera_local.engine.seam import (
    ChatMessage,
    ContextOverflow,
    EngineDied,
    EngineError,
    Finish,
    InvalidRequest,
    Limits,
    Reply,
    Request,
    Usage,
)
from vera_local.engine.template import fold_system, longest_first
from vera_local.errors import UserError

SEQUENCES = 64
"""Requests held open at once: enough to fill a server's batch, few enough not to exhaust its sockets."""

PAUSES = (0.5, 1.0, 2.0)
"""Seconds waited before each further try after a lost connection or a server fault."""

BUSY = (408, 429)
"""Statuses below 500 with which a server asks to be tried again."""

REFUSED = (401, 403)
"""Statuses that mean a missing or wrong key."""

TIMEOUT = httpx.Timeout(600.0, connect=5.0)
"""A long generation may take minutes; a server that is there accepts within seconds."""


class OpenAIEngine:
    """Chat completions of one served model. Constraints go as vLLM's `structured_outputs`.

    Of the profile's template facts `answer_prefix` is not sent: the server's own template begins the answer.
    """

    def __init__(self, client: httpx.AsyncClient, model: str, profile: Profile, context: int) -> None:
        self._client = client
        self._model = model
        self._profile = profile
        self._limits = Limits(context=context, kv_tokens=None, sequences=SEQUENCES)

    @classmethod
    async def open(
        cls,
        profile: Profile,
        base_url: str,
        key_variable: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> OpenAIEngine:
        """Reach the server at `base_url` (ending in /v1) and find the model it serves.

        `key_variable` names the environment variable that holds the key. Raises UserError where the server does not
        answer, serves nothing, or the variable is empty.
        """
        client = _client(base_url, _headers(key_variable), transport)
        try:
            model, context = await _served(client, base_url, profile)
        except BaseException:
            await client.aclose()
            raise
        return cls(client, model, profile, context)

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def markers(self) -> tuple[str, ...]:
        return longest_first((), self._profile.template)

    async def tokens(self, text: str) -> tuple[int, ...]:
        answer = await self._post("../tokenize", {"model": self._model, "prompt": text, "add_special_tokens": False})
        return tuple(answer["tokens"])

    async def count_tokens(self, messages: Sequence[ChatMessage], *, thinking: bool = False) -> int:
        body = {"model": self._model, "messages": self._messages(messages), **self._template_arguments(thinking)}
        # vLLM serves the tokenizer beside /v1, not below it.
        answer = await self._post("../tokenize", body)
        try:
            return int(answer["count"])
        except (KeyError, TypeError, ValueError) as error:
            raise EngineError("the server counted no tokens; it has to be vLLM's") from error

    async def generate(self, request: Request) -> Reply:
        if request.labels:
            raise InvalidRequest("an OpenAI-compatible server does not offer label reads; use the vllm engine")
        try:
            return _reply(await self._post("chat/completions", self._body(request)))
        except InvalidRequest:
            await self._raise_overflow(request)
            raise

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _raise_overflow(self, request: Request) -> None:
        try:
            prompt = await self.count_tokens(request.messages)
        except EngineDied:
            raise
        except EngineError:
            # Then the server's own words on the refused request say more than this failure.
            return
        if prompt + request.sampling.max_tokens > self._limits.context:
            raise ContextOverflow(prompt, self._limits.context)

    def _messages(self, messages: Sequence[ChatMessage]) -> list[dict[str, str]]:
        turns = tuple(messages) if self._profile.template.system_role else fold_system(messages)
        return [{"role": m.role, "content": m.content} for m in turns]

    def _template_arguments(self, thinking: bool) -> dict[str, Any]:
        facts = self._profile.template
        return {"chat_template_kwargs": {facts.thinking_switch: thinking}} if facts.thinking_switch else {}

    def _body(self, request: Request) -> dict[str, Any]:
        s = request.sampling
        body: dict[str, Any] = {
            "model": self._model,
            "messages": self._messages(request.messages),
            "temperature": s.temperature,
            "top_p": s.top_p,
            "max_tokens": s.max_tokens,
            "seed": s.seed,
            "repetition_penalty": s.repetition_penalty,
            # Stated, because the server would otherwise take them from the model's generation_config.
            "top_k": 0,
            "min_p": 0.0,
            **self._template_arguments(request.thinking),
        }
        if request.pattern is not None:
            body["structured_outputs"] = {"regex": request.pattern}
        return body

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        response = await self._ask("POST", path, body)
        if response.status_code < 500:
            return _answer(response)
        await self._raise_died()
        raise EngineError(f"the server failed at this request again and again (status {response.status_code})")

    async def _raise_died(self) -> None:
        """EngineDied unless the list of models, which costs no model anything, still comes."""
        response = await self._ask("GET", "models")
        if response.status_code >= 500:
            raise self._died(f"status {response.status_code}")

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        """What comes back, asked for again while it is a fault; a fault of the server that stays is returned.

        Raises EngineDied where the connection stays lost or the server stays too busy: that concerns every request.
        """
        fault = ""
        for pause in (*PAUSES, None):
            try:
                response = await self._client.request(method, path, json=body)
                status = response.status_code
                if status not in BUSY and (status < 500 or pause is None):
                    return response
                fault = f"status {status}"
            except httpx.RequestError as error:
                fault = _reason(error)
            if pause is not None:
                await asyncio.sleep(pause)
        raise self._died(fault)

    def _died(self, fault: str) -> EngineDied:
        return EngineDied(f"the server at {self._client.base_url} no longer answers ({fault})")


def _headers(key_variable: str | None) -> dict[str, str]:
    if key_variable is None:
        return {}
    key = os.environ.get(key_variable, "").strip()
    if not key:
        raise UserError(f"the environment variable {key_variable} is empty; put the server's key into it")
    if not (key.isascii() and key.isprintable()):
        # Refused here, because the HTTP library would show it in its complaint.
        raise UserError(f"the environment variable {key_variable} holds characters that no key has; correct it")
    return {"Authorization": f"Bearer {key}"}


def _client(base_url: str, headers: dict[str, str], transport: httpx.AsyncBaseTransport | None) -> httpx.AsyncClient:
    # With a transport of its own a client ignores HTTP_PROXY: conversations go to the named server and nowhere else.
    transport = transport or httpx.AsyncHTTPTransport()
    try:
        return httpx.AsyncClient(
            base_url=base_url.rstrip("/") + "/", headers=headers, timeout=TIMEOUT, transport=transport
        )
    except httpx.InvalidURL as error:
        raise UserError(f"{base_url} is no URL ({error}); correct the base URL") from error


def _reason(error: httpx.RequestError) -> str:
    return str(error) or type(error).__name__


async def _served(client: httpx.AsyncClient, base_url: str, profile: Profile) -> tuple[str, int]:
    """The served model's id and its context in tokens."""
    served = _models(await _ask_for_models(client, base_url), base_url)
    if not served:
        raise UserError(f"the server at {base_url} serves no model")
    chosen = next((name for name in served if name in (profile.name, profile.source.hub)), None)
    if chosen is None:
        names = ", ".join(served)
        raise UserError(f"the server at {base_url} serves {names}, not {profile.name}; name one that it serves")
    return chosen, served[chosen] or profile.context


async def _ask_for_models(client: httpx.AsyncClient, base_url: str) -> httpx.Response:
    try:
        return await client.get("models")
    except httpx.RequestError as error:
        raise UserError(
            f"no server answers at {base_url} ({_reason(error)}); start it or correct the base URL"
        ) from error


def _models(response: httpx.Response, base_url: str) -> dict[str, int | None]:
    """Id of each served model -> its context in tokens, None where the server does not say."""
    status = response.status_code
    if status in REFUSED:
        raise UserError(f"the server at {base_url} refuses access (status {status}); name the variable with its key")
    if status >= 500 or status in BUSY:
        raise UserError(f"the server at {base_url} is not ready (status {status}); try again when it is")
    try:
        return {str(model["id"]): _context(model) for model in response.json()["data"]}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{base_url} is no OpenAI-compatible server (status {status} and no list of models); "
            "the URL usually ends in /v1"
        ) from error


def _context(model: dict[str, Any]) -> int | None:
    length = model.get("max_model_len")
    return None if length is None else int(length)


def _answer(response: httpx.Response) -> dict[str, Any]:
    if response.status_code in REFUSED:
        # Without its words, which may repeat the key.
        raise InvalidRequest(f"the server refuses access with status {response.status_code}")
    if response.status_code >= 400:
        raise InvalidRequest(f"the server refused a request with status {response.status_code}: {response.text[:300]}")
    try:
        answer = response.json()
    except ValueError as error:
        raise EngineError("the server answered with something that is not JSON") from error
    if not isinstance(answer, dict):
        raise EngineError("the server answered with JSON that is not an object")
    return answer


def _reply(answer: dict[str, Any]) -> Reply:
    try:
        choice, usage = answer["choices"][0], answer["usage"]
        finish = Finish(choice["finish_reason"])
        details = usage.get("prompt_tokens_details") or {}
        counted = Usage(
            int(usage["prompt_tokens"]), int(details.get("cached_tokens") or 0), int(usage["completion_tokens"])
        )
        return Reply(_text(choice["message"]["content"]), finish, counted)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise EngineError(f"the server's answer lacks what a chat completion has ({error!r})") from error


def _text(content: Any) -> str:
    """The text of a message; None stands for an empty one."""
    if content is not None and not isinstance(content, str):
        raise TypeError("the content is no text")
    return content or ""
