"""Chat completions of servers that are strict, that stream, and that are not what they seem."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chatbot.faulty import Act, Asked, Raw, said, sent, serving
from tests.chatbot.serving import Served, completions
from vera_local.chatbot import Answer, Chatbot, ChatbotFailed, ChatbotOverflow, OpenAISettings, make_chatbot
from vera_local.conversation import Conversation, Message, Speaker
from vera_local.engine.seam import Usage
from vera_local.errors import UserError

KEY = "sk-key-of-a-hosted-service"
HISTORY = (
    Message(Speaker.PERSONA, "hi"),
    Message(Speaker.CHATBOT, " yes? "),
    Message(Speaker.PERSONA, "no"),
)
SEEN = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": " yes? "},
    {"role": "user", "content": "no"},
]


@pytest.fixture(scope="module")
def asked() -> list[Any]:
    return []


@pytest.fixture(scope="module")
def server(asked: list[Any]) -> Iterator[Served]:
    served = Served(lambda: completions("our-model", KEY, asked))
    yield served
    served.stop()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, asked: list[Any]) -> None:
    monkeypatch.setenv("OUR_KEY", KEY)
    asked.clear()


def chatbot(base: str, prompt: str = "", aliases: tuple[str, ...] = (), **settings: Any) -> Chatbot:
    plain = {"url": f"{base}/v1", "model": "our-model", "key_env": "OUR_KEY", "backoff": 0.001, "retries": 1}
    return make_chatbot(OpenAISettings.model_validate(plain | settings), prompt, aliases)


async def once(bot: Chatbot) -> Answer:
    session = await bot.open(Conversation("Ann-1", "Ann", 1), 1)
    return await session.reply(HISTORY, 5)


async def test_only_what_is_set_is_sent(server: Served, asked: list[Any]) -> None:
    bot = chatbot(server.url)
    await bot.check()
    assert not bot.remembers
    assert await once(bot) == Answer("I heard: no", Usage(7, 0, 3))
    assert asked == [{"model": "our-model", "messages": SEEN, "seed": 5}]


async def test_what_is_set_is_sent(server: Served, asked: list[Any]) -> None:
    stated: dict[str, Any] = {"temperature": 0.0, "top_p": 0.5, "max_tokens": 9}
    await once(chatbot(server.url, "Help.", send_seed=False, extra={"stream": False}, **stated))
    assert asked == [
        {
            "model": "our-model",
            "messages": [{"role": "system", "content": "Help."}, *SEEN],
            **stated,
            "stream": False,
        }
    ]


async def test_a_stream_is_put_together(server: Served) -> None:
    assert await once(chatbot(server.url, stream=True)) == Answer("I heard: no", cut=True)


async def test_a_wrong_key_is_told_without_it(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_KEY", "sk-another-key")
    with pytest.raises(UserError, match=r"refuses access \(status 401\); see to key_env") as at_first:
        await chatbot(server.url).check()
    with pytest.raises(ChatbotFailed, match="refuses access with status 401") as later:
        await once(chatbot(server.url))
    assert "sk-another-key" not in f"{at_first.value} {later.value}"


async def test_another_model_is_told(server: Served) -> None:
    with pytest.raises(UserError, match="serves our-model, not their-model; name one that it serves"):
        await chatbot(server.url, model="their-model").check()


async def test_a_model_is_known_by_its_other_names(server: Served, asked: list[Any]) -> None:
    bot = chatbot(server.url, model="ours", aliases=("our-model",))
    await bot.check()
    await once(bot)
    assert asked[0]["model"] == "our-model"


async def test_a_base_url_without_its_end_is_told(server: Served) -> None:
    with pytest.raises(UserError, match=rf"^{server.url} is not where .*; add /v1 to the base URL"):
        await chatbot(server.url, url=server.url).check()


async def test_no_server_is_told() -> None:
    async with serving(lambda _: said({})) as raw:
        pass
    with pytest.raises(UserError, match=rf"no server answers at {raw.url}/v1 \(.*; start it or correct the base URL"):
        await chatbot(raw.url).check()


@pytest.mark.parametrize(
    "act",
    [sent(b"", 401), sent(b"", 503), sent(b'{"data": []}'), said({"data": [{"id": KEY}]}), None],
)
async def test_a_key_in_the_base_url_is_told_by_its_name(act: Act | None) -> None:
    async with serving(lambda _: act or said({})) as raw:
        url = f"{raw.url}/env:OUR_KEY/v1"
        if act is not None:
            with pytest.raises(UserError, match=r"/\[OUR_KEY\]/v1") as caught:
                await chatbot(raw.url, url=url).check()
    if act is None:
        with pytest.raises(UserError, match=r"no server answers at .*/\[OUR_KEY\]/v1") as caught:
            await chatbot(raw.url, url=url).check()
    assert KEY not in str(caught.value)


async def test_a_list_of_models_without_end_is_no_list() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[")
        while True:
            writer.write(b"1," * 100_000)
            await writer.drain()

    async with serving(lambda _: endless) as raw:
        with pytest.raises(UserError, match=r"its reply is larger than 1000000 bytes\); start it or correct"):
            await chatbot(raw.url).check()


async def test_a_key_may_stand_among_further_keys_of_a_request() -> None:
    completion = said({"choices": [{"message": {"content": "yes"}}]})
    async with serving(lambda _: completion) as raw:
        await once(chatbot(raw.url, extra={"caller": {"key": "env:OUR_KEY"}}))
        with pytest.raises(UserError, match="the environment variable NO_SUCH_KEY is empty"):
            chatbot(raw.url, extra={"caller": "env:NO_SUCH_KEY"})
    assert raw.asked[-1].json["caller"] == {"key": KEY}


async def test_a_server_without_a_list_of_models_is_believed() -> None:
    async with serving(lambda _: sent(b"not found", 404)) as raw:
        await chatbot(raw.url).check()


async def fails(raw: Raw, told: str, **settings: Any) -> None:
    with pytest.raises(ChatbotFailed, match=told):
        await once(chatbot(raw.url, **settings))


@pytest.mark.parametrize(
    "content",
    [[], {}, {"choices": []}, {"choices": [{"message": {"content": 5}}]}, {"choices": [{"message": None}]}],
)
async def test_what_is_no_completion_is_a_fault(content: Any) -> None:
    async with serving(lambda _: said(content)) as raw:
        await fails(raw, "its reply is no chat completion, in 2 tries")


async def test_no_content_is_an_empty_reply() -> None:
    async with serving(lambda _: said({"choices": [{"message": {"content": None}}]})) as raw:
        assert await once(chatbot(raw.url)) == Answer("")


async def test_a_number_of_tokens_that_no_reply_has_is_not_counted() -> None:
    usage = {"prompt_tokens": 10**30, "completion_tokens": -1, "prompt_tokens_details": {"cached_tokens": 3}}
    async with serving(lambda _: said({"choices": [{"message": {"content": "yes"}}], "usage": usage})) as raw:
        assert await once(chatbot(raw.url)) == Answer("yes", Usage(0, 3, 0))


def event(content: Any) -> bytes:
    return f"data: {json.dumps(content)}\n\n".encode()


PIECE = event({"choices": [{"delta": {"content": "half"}}]})


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (PIECE, "its stream broke off before the end"),
        (PIECE + event({"error": {"message": "overloaded"}}), "it reported an error in the middle of its stream"),
        (PIECE + b"data: {\n\n", "not whole JSON"),
        (PIECE + b"data: \xff\n\n", "not in UTF-8"),
        (event([1]), "its stream is not one of chat completions"),
        (b"data: " + b"x" * 2_000_000, "larger than 1000000 bytes"),
        (event({"choices": [{"delta": {"content": "x" * 600_000}}]}) * 2 + b"data: [DONE]\n\n", "larger than"),
    ],
)
async def test_a_broken_stream_is_a_fault(body: bytes, told: str) -> None:
    async with serving(lambda _: sent(body, kind="text/event-stream")) as raw:
        await fails(raw, told, stream=True)


async def test_a_stream_may_end_with_its_reason_alone() -> None:
    body = PIECE + event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    async with serving(lambda _: sent(body, kind="text/event-stream; charset=utf-8")) as raw:
        assert await once(chatbot(raw.url, stream=True)) == Answer("half")


async def test_a_history_that_is_too_long_is_told_apart() -> None:
    told = b'{"error": {"message": "This model\'s maximum context length is 10 tokens", "code": 400}}'
    async with serving(lambda _: sent(told, 400)) as raw:
        with pytest.raises(ChatbotOverflow, match="maximum context length is 10 tokens"):
            await once(chatbot(raw.url))
    assert len(raw.asked) == 1


async def test_faults_are_tried_again() -> None:
    acts: list[Act] = [sent(b"", 502), said({"choices": [{"message": {"content": "ok"}}]})]

    def decide(asked: Asked) -> Act:
        return acts.pop(0)

    async with serving(decide) as raw:
        assert await once(chatbot(raw.url)) == Answer("ok")
