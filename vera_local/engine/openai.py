"""An OpenAI-compatible server that somebody else runs, as `vllm serve` does. Knows no model files and no GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx

from vera_local.engine.completion import Completion, chat_reply, completion, whole
from vera_local.engine.labels import check_labels
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
    Sampling,
)
from vera_local.engine.server import Address, NotThere, Server
from vera_local.engine.template import ANCHORS, fold_system, longest_first
from vera_local.errors import UserError

ONLY_VLLM = (
    "this server cannot go on with an answer, end it at a text, let a model reason or read labels: "
    "serve the model with vLLM's own server, or use the vllm engine"
)


class OpenAIEngine:
    """One served model. Constraints go as vLLM's `structured_outputs`.

    What a chat completion has no words for (`begun`, `stop`, `labels`, `thinking`) goes to vLLM's server as token ids.
    Only then, and for constrained answers, is the profile's `answer_prefix` sent: in a plain chat the server's own
    template begins the answer. The server does not tell its control tokens: `markers` are those that the profile knows.
    """

    def __init__(self, server: Server, model: str, profile: Profile, limits: Limits) -> None:
        self._server = server
        self._model = model
        self._facts = profile.template
        self._limits = limits
        self._opening: str | None = None
        self._known: dict[str, tuple[int, ...]] = {}

    @classmethod
    async def open(
        cls,
        profile: Profile,
        at: Address,
        key_variable: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> OpenAIEngine:
        """Reach the server `at` a base URL (ending in /v1) and find the model it serves.

        `key_variable` names the environment variable that holds the key. Raises UserError where the server does not
        answer, serves nothing, or the variable is empty.
        """
        server = Server(at, key_variable, transport)
        try:
            model, context = _chosen(await server.models(), at.url, profile)
        except BaseException:
            await server.aclose()
            raise
        return cls(server, model, profile, Limits(context=context, kv_tokens=None, sequences=at.requests))

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def markers(self) -> tuple[str, ...]:
        return longest_first((), self._facts)

    async def count_tokens(self, messages: Sequence[ChatMessage], *, thinking: bool = False) -> int:
        answer = await self._tokenize(self._messages(messages, thinking))
        try:
            return int(answer["count"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise EngineError("the server counted no tokens; it has to be vLLM's") from error

    async def tokens(self, text: str) -> tuple[int, ...]:
        if text not in self._known:
            self._known[text] = await self._behind_anchor(text)
        return self._known[text]

    async def generate(self, request: Request) -> Reply:
        check_labels(request)
        if _needs_ids(request) or (request.pattern is not None and self._facts.answer_prefix):
            return await self._go_on(request)
        try:
            return chat_reply(await self._server.post("chat/completions", self._chat(request)))
        except InvalidRequest:
            await self._raise_overflow(request)
            raise

    async def aclose(self) -> None:
        await self._server.aclose()

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

    def _messages(self, messages: Sequence[ChatMessage], thinking: bool) -> dict[str, Any]:
        turns = tuple(messages) if self._facts.system_role else fold_system(messages)
        body: dict[str, Any] = {"messages": [{"role": m.role, "content": m.content} for m in turns]}
        if self._facts.thinking_switch:
            body["chat_template_kwargs"] = {self._facts.thinking_switch: thinking}
        return body

    def _chat(self, request: Request) -> dict[str, Any]:
        return {
            "model": self._model,
            **self._messages(request.messages, thinking=False),
            **_settings(request.sampling, request.pattern),
        }

    async def _go_on(self, request: Request) -> Reply:
        """Have vLLM write behind token ids."""
        ids = [*await self._prompt(request.messages, request.thinking), *request.begun]
        if len(ids) + request.sampling.max_tokens > self._limits.context:
            raise ContextOverflow(len(ids), self._limits.context)
        # Control tokens show up in no text, so the id of a stop that is one token has to end the answer, too.
        mark = await self.tokens(request.stop) if request.stop else ()
        mark = mark if len(mark) == 1 else ()
        body = {"model": self._model, "prompt": ids, "add_special_tokens": False, **_behind_ids(request, mark)}
        answer = await self._server.post("completions", body)
        return await self._reply(completion(answer, request.labels), request, mark)

    async def _reply(self, done: Completion, request: Request, mark: tuple[int, ...]) -> Reply:
        finish, tokens = done.finish, done.tokens
        if finish is Finish.STOP and done.stopped_by == request.stop:
            finish, tokens = Finish.MARK, await self._before(tokens, request.stop, done.text)
        elif finish is Finish.STOP:
            finish, tokens = Finish.MARK if mark and tokens[-1:] == mark else Finish.STOP, tokens[:-1]
        return Reply(done.text, finish, done.usage, done.labels, tokens)

    async def _before(self, tokens: tuple[int, ...], stop: str, text: str) -> tuple[int, ...]:
        """The ids of `text`, which `stop` follows in what `tokens` say; the token in which it begins is split."""
        anchor = await self._encode("a")
        for held in range(1, len(tokens) + 1):
            end = (await self._decode([*anchor, *tokens[-held:]])).removeprefix("a")
            if stop in end:
                return (*tokens[:-held], *await self.tokens(end[: end.index(stop)]))
        return await self.tokens(text)

    async def _prompt(self, messages: Sequence[ChatMessage], thinking: bool) -> list[int]:
        prefix = [] if thinking or not self._facts.answer_prefix else await self._encode(self._facts.answer_prefix)
        return [*_ids(await self._tokenize(self._messages(messages, thinking))), *prefix]

    async def _behind_anchor(self, text: str) -> tuple[int, ...]:
        """The ids of `text` as ChatTemplate finds them: behind a text with which it does not melt."""
        if self._opening is None:
            self._opening = await self._decode(await self._prompt([ChatMessage("user", "a")], thinking=False))
        for anchor in (self._opening, *ANCHORS):
            before, whole = await self._encode(anchor), await self._encode(anchor + text)
            if whole[: len(before)] == before and await self._decode(whole) == await self._decode(before) + text:
                return tuple(whole[len(before) :])
        return tuple(await self._encode(text))

    async def _encode(self, text: str) -> list[int]:
        return _ids(await self._tokenize({"prompt": text, "add_special_tokens": False})) if text else []

    async def _decode(self, ids: Sequence[int]) -> str:
        if not ids:
            return ""
        answer = await self._beside("detokenize", {"tokens": list(ids)})
        return whole(str(answer.get("prompt")))

    async def _tokenize(self, what: Mapping[str, Any]) -> dict[str, Any]:
        return await self._beside("tokenize", what)

    async def _beside(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask what vLLM serves beside /v1, not below it."""
        try:
            return await self._server.post(f"../{path}", {"model": self._model, **body})
        except NotThere as error:
            raise InvalidRequest(ONLY_VLLM) from error


def _chosen(served: Mapping[str, int | None], base_url: str, profile: Profile) -> tuple[str, int]:
    """The served model's id and its context in tokens."""
    if not served:
        raise UserError(f"the server at {base_url} serves no model")
    chosen = next((name for name in served if name in (profile.name, profile.source.hub)), None)
    if chosen is None:
        names = ", ".join(served)
        raise UserError(f"the server at {base_url} serves {names}, not {profile.name}; name one that it serves")
    return chosen, served[chosen] or profile.context


def _needs_ids(request: Request) -> bool:
    return bool(request.begun or request.stop or request.labels or request.thinking)


def _settings(sampling: Sampling, pattern: str | None) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        "repetition_penalty": sampling.repetition_penalty,
        # Stated, because the server would otherwise take them from the model's generation_config.
        "top_k": 0,
        "min_p": 0.0,
        # Answers can be gone on with where the server tells their ids.
        "return_token_ids": True,
    }
    return settings if pattern is None else settings | {"structured_outputs": {"regex": pattern}}


def _behind_ids(request: Request, mark: Sequence[int]) -> dict[str, Any]:
    settings = _settings(request.sampling, request.pattern)
    if request.stop:
        settings |= {"stop": [request.stop], "stop_token_ids": list(mark)}
    if request.labels:
        # Greedy and without a penalty: nobody knows at which stage this server reads probabilities.
        plain = _settings(replace(request.sampling, temperature=0.0, top_p=1.0, repetition_penalty=1.0), None)
        labels = {"logprobs": 1, "logprob_token_ids": list(request.labels), "return_tokens_as_token_ids": True}
        settings |= plain | labels
    return settings


def _ids(answer: Mapping[str, Any]) -> list[int]:
    try:
        return [int(token) for token in answer["tokens"]]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InvalidRequest(ONLY_VLLM) from error
