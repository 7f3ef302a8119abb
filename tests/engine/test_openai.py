from __future__ import annotations

import asyncio
import json
import re
import socket
from typing import Any

import httpx
import pytest

from tests.engine.http_server import (
    CHAT,
    COUNT,
    LIST,
    MESSAGES,
    MODELS,
    SAMPLING,
    SECRET,
    URL,
    Handler,
    Server,
    broken,
    completion,
    in_turn,
    opened,
    profile,
    refusal,
    status,
)
from vera_local.engine.openai import OpenAIEngine
from vera_local.engine.profile import Template
from vera_local.engine.seam import (
    ChatMessage,
    ContextOverflow,
    Engine,
    EngineDied,
    EngineError,
    Finish,
    InvalidRequest,
    Reply,
    Request,
    Usage,
)
from vera_local.engine.server import PAUSES, Address
from vera_local.errors import UserError


@pytest.fixture(autouse=True)
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses are noted and not waited."""
    pauses: list[float] = []
    real = asyncio.sleep

    async def note(seconds: float) -> None:
        pauses.append(seconds)
        await real(0)

    monkeypatch.setattr("vera_local.engine.server.asyncio.sleep", note)
    return pauses


async def test_free_text_is_asked_for_with_every_setting_stated() -> None:
    server = Server()
    engine: Engine = await opened(server)
    assert await engine.generate(Request(MESSAGES, SAMPLING)) == Reply("good day", Finish.STOP, Usage(12, 0, 3))
    assert server.bodies(CHAT) == [
        {
            "model": "org/own",
            "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}],
            "temperature": 0.7,
            "top_p": 0.9,
            "max_tokens": 40,
            "seed": 123,
            "repetition_penalty": 1.1,
            "top_k": 0,
            "min_p": 0.0,
            "return_token_ids": True,
        }
    ]


async def test_a_constraint_goes_as_structured_outputs() -> None:
    server = Server()
    await (await opened(server)).generate(Request(MESSAGES, SAMPLING, r"(No|Not\ Relevant)"))
    assert server.bodies(CHAT)[0]["structured_outputs"] == {"regex": r"(No|Not\ Relevant)"}


async def test_thinking_is_switched_off_where_prompts_are_answered_and_where_they_are_counted() -> None:
    server = Server()
    facts = Template(system_role=True, thinking="switch", thinking_switch="enable_thinking", reasoning_parser="qwen3")
    engine = await opened(server, facts)
    await engine.generate(Request(MESSAGES, SAMPLING))
    assert await engine.count_tokens(MESSAGES) == 10
    switched = [body["chat_template_kwargs"] for path in (CHAT, COUNT) for body in server.bodies(path)]
    assert switched == [{"enable_thinking": False}] * 2


async def test_the_system_text_is_folded_for_a_template_without_that_role() -> None:
    server = Server()
    engine = await opened(server, Template(system_role=False, thinking="none"))
    await engine.generate(Request(MESSAGES, SAMPLING))
    await engine.count_tokens(MESSAGES)
    for path in (CHAT, COUNT):
        assert server.bodies(path)[0]["messages"] == [{"role": "user", "content": "be kind\n\nhello"}]


@pytest.mark.parametrize(
    ("url", "models", "tokenize"),
    [
        ("http://gpu-box:8000/v1", "http://gpu-box:8000/v1/models", "http://gpu-box:8000/tokenize"),
        ("http://gpu-box:8000/v1/", "http://gpu-box:8000/v1/models", "http://gpu-box:8000/tokenize"),
        ("https://lab/vllm/v1", "https://lab/vllm/v1/models", "https://lab/vllm/tokenize"),
    ],
)
async def test_tokens_are_counted_beside_v1(url: str, models: str, tokenize: str) -> None:
    paths = {"/vllm/v1/models": MODELS, "/vllm/tokenize": {"count": 7}}
    server = Server(**paths)
    engine = await OpenAIEngine.open(profile(), Address(url), None, server)
    await engine.count_tokens(MESSAGES)
    assert [str(r.url) for r in server.requests] == [models, tokenize]


@pytest.mark.parametrize(
    ("details", "cached"),
    [
        ({}, 0),
        ({"prompt_tokens_details": None}, 0),
        ({"prompt_tokens_details": {"cached_tokens": None}}, 0),
        ({"prompt_tokens_details": {"cached_tokens": 8}}, 8),
    ],
)
async def test_cached_tokens_are_counted_where_the_server_tells_them(details: dict[str, Any], cached: int) -> None:
    reply = await (await opened(Server(**{CHAT: completion(**details)}))).generate(Request(MESSAGES, SAMPLING))
    assert reply.usage == Usage(prompt=12, cached=cached, output=3)


async def test_a_cut_answer_and_an_empty_one_are_replies() -> None:
    server = Server(**{CHAT: in_turn(completion("cut", "length"), completion(None))})
    engine = await opened(server)
    assert (await engine.generate(Request(MESSAGES, SAMPLING))).finish is Finish.LENGTH
    assert (await engine.generate(Request(MESSAGES, SAMPLING))).text == ""


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        completion(finish="content_filter"),
        completion(prompt_tokens=None),
        completion(prompt_tokens=10**30),
        completion(completion_tokens=-1),
        completion(prompt_tokens_details=["odd"]),
        {"choices": [], "usage": {}},
        {"choices": [{"message": {"content": ["a"]}, "finish_reason": "stop"}], "usage": completion()["usage"]},
        {"choices": ["odd"], "usage": completion()["usage"]},
        httpx.Response(200, text="<html>"),
        httpx.Response(200, text="[" * 100_000),
        httpx.Response(302, headers={"Location": "http://elsewhere/"}),
    ],
)
async def test_an_answer_that_is_no_completion_fails_this_request_alone(answer: Any) -> None:
    engine = await opened(Server(**{CHAT: answer}))
    with pytest.raises(EngineError) as caught:
        await engine.generate(Request(MESSAGES, SAMPLING))
    assert not isinstance(caught.value, EngineDied)


CODED = {"Content-Type": "text/plain; charset=unicode_escape"}
"""The code that a server says its words are in."""

HALF = "half of \ud800 a pair"
"""JSON can say it, and neither a file nor a request can."""


@pytest.mark.parametrize(
    "answer",
    [
        completion(HALF),
        completion(finish=HALF),
        completion(None) | {"choices": [{"finish_reason": "stop", "message": {"content": None, "refusal": HALF}}]},
        httpx.Response(400, content=HALF.encode("unicode_escape"), headers=CODED),
        httpx.Response(200, content=b'{"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}],'
                       b' "usage": {"prompt_tokens": Infinity, "completion_tokens": 1}}'),
    ],
)  # fmt: skip
async def test_an_answer_that_cannot_be_kept_fails_this_request_alone_and_with_words_that_can(answer: Any) -> None:
    engine = await opened(Server(**{CHAT: lambda _: answer if isinstance(answer, httpx.Response) else escaped(answer)}))
    with pytest.raises(EngineError) as caught:
        await engine.generate(Request(MESSAGES, SAMPLING))
    assert not isinstance(caught.value, EngineDied)
    assert str(caught.value).encode()


def escaped(answer: Any) -> httpx.Response:
    return httpx.Response(200, content=json.dumps(answer))


@pytest.mark.parametrize("count", [960, 961, 5000])
async def test_a_refused_request_that_is_too_long_is_an_overflow(count: int) -> None:
    engine = await opened(Server(**{CHAT: status(400, "too long"), COUNT: {"count": count}}))
    with pytest.raises(EngineError) as caught:
        await engine.generate(Request(MESSAGES, SAMPLING))
    assert isinstance(caught.value, ContextOverflow) == (count + SAMPLING.max_tokens > 1000)
    if isinstance(caught.value, ContextOverflow):
        assert (caught.value.prompt_tokens, caught.value.context) == (count, 1000)


@pytest.mark.parametrize("code", [400, 404, 422])
async def test_any_other_refusal_is_told_and_not_tried_again(code: int) -> None:
    server = Server(**{CHAT: status(code, "no such field")})
    with pytest.raises(InvalidRequest, match=f"{code}: no such field"):
        await (await opened(server)).generate(Request(MESSAGES, SAMPLING))
    assert len(server.bodies(CHAT)) == 1


def quoting(request: httpx.Request) -> httpx.Response:
    """As vLLM and FastAPI refuse what they cannot read."""
    return httpx.Response(422, json={"detail": [{"msg": "no such field", "input": json.loads(request.content)}]})


LONG = ChatMessage("user", "you are so far from me, and \u201cnobody\u201d\nwould miss me if I did not come back")


@pytest.mark.parametrize("asked", [Request((LONG,), SAMPLING), Request((LONG,), SAMPLING, begun=(1,))])
async def test_a_refusal_is_told_without_what_was_asked(asked: Request) -> None:
    ids = {"tokens": [1001, 1002, 1003, 1004, 1005, 1006]}
    server = Server(**{CHAT: quoting, COUNT: ids, "/v1/completions": quoting})
    with pytest.raises(InvalidRequest, match=r"422: .*no such field.*model.*org/own") as caught:
        await (await opened(server)).generate(asked)
    assert "[...]" in str(caught.value)
    assert not re.search("so far|nobody|miss me|come back|100[1-6]", str(caught.value))


async def test_text_that_a_tokenizer_refuses_is_not_told() -> None:
    count = in_turn({"tokens": [1]}, {"tokens": [1]}, quoting)
    engine = await opened(Server(**{COUNT: count, "/detokenize": {"prompt": "a"}}))
    with pytest.raises(InvalidRequest, match=r"no such field.*add_special_tokens") as caught:
        await engine.tokens(LONG.content)
    assert "miss me" not in str(caught.value)


@pytest.mark.parametrize("count", [status(404, "Not Found"), {"tokens": []}, {"count": "many"}])
async def test_a_server_that_cannot_count_does_not_hide_why_it_refused(count: Any) -> None:
    engine = await opened(Server(**{CHAT: status(400, "bad pattern"), COUNT: count}))
    with pytest.raises(InvalidRequest, match="bad pattern"):
        await engine.generate(Request(MESSAGES, SAMPLING))
    with pytest.raises(EngineError):
        await engine.count_tokens(MESSAGES)


async def test_a_server_that_dies_while_it_counts_has_died() -> None:
    engine = await opened(Server(**{CHAT: status(400, "too long"), COUNT: broken(httpx.ConnectError("gone"))}))
    with pytest.raises(EngineDied):
        await engine.generate(Request(MESSAGES, SAMPLING))


async def test_label_reads_are_refused_without_asking() -> None:
    server = Server()
    engine = await opened(server)
    with pytest.raises(InvalidRequest, match="label"):
        await engine.generate(Request(MESSAGES, SAMPLING, labels=(1, 2)))
    assert server.bodies(CHAT) == []


FAULTS = [status(500), status(503)]
"""Of the server, at one request."""

LOSSES = [
    status(408),
    status(429),
    broken(httpx.ConnectError("")),
    broken(httpx.ConnectTimeout("slow")),
    broken(httpx.RemoteProtocolError("closed")),
    broken(httpx.DecodingError("garbled")),
]
"""Of the server as a whole."""


@pytest.mark.parametrize("fault", [*FAULTS, *LOSSES])
async def test_a_passing_fault_is_tried_again_with_the_same_request(fault: Handler, waited: list[float]) -> None:
    server = Server(**{CHAT: in_turn(fault, fault, completion())})
    reply = await (await opened(server)).generate(Request(MESSAGES, SAMPLING))
    assert reply.text == "good day"
    first, *others = server.bodies(CHAT)
    assert others == [first, first]
    assert waited == list(PAUSES[:2])


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_loss_that_stays_means_that_the_engine_died(loss: Handler, waited: list[float]) -> None:
    server = Server(**{CHAT: loss})
    with pytest.raises(EngineDied, match=re.escape("http://gpu-box:8000/v1/ no longer answers")) as caught:
        await (await opened(server)).generate(Request(MESSAGES, SAMPLING))
    assert len(server.bodies(CHAT)) == 1 + len(PAUSES)
    assert waited == list(PAUSES)
    assert "()" not in str(caught.value)


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_that_stays_fails_this_request_alone_while_the_server_answers(
    fault: Handler, waited: list[float]
) -> None:
    server = Server(**{CHAT: lambda r: fault(r) if b"poison" in r.content else httpx.Response(200, json=completion())})
    engine = await opened(server)
    with pytest.raises(EngineError, match=r"failed at this request \(status 50[03]\)") as caught:
        await engine.generate(Request((ChatMessage("user", "poison"),), SAMPLING))
    assert type(caught.value) is EngineError
    assert len(server.bodies(CHAT)) == 1 + len(PAUSES)
    assert waited == list(PAUSES)
    assert (await engine.generate(Request(MESSAGES, SAMPLING))).text == "good day"


@pytest.mark.parametrize("listing", [*FAULTS, *LOSSES])
async def test_a_fault_that_stays_where_no_models_are_listed_either_means_that_the_engine_died(
    listing: Handler, waited: list[float]
) -> None:
    server = Server(**{CHAT: status(500), LIST: in_turn(MODELS, listing)})
    with pytest.raises(EngineDied, match="no longer answers"):
        await (await opened(server)).generate(Request(MESSAGES, SAMPLING))
    assert waited == [*PAUSES, *PAUSES]


@pytest.mark.parametrize("fault", [*FAULTS, *LOSSES])
async def test_a_list_of_models_that_fails_in_passing_does_not_mean_that_the_engine_died(fault: Handler) -> None:
    engine = await opened(Server(**{CHAT: status(500), LIST: in_turn(MODELS, fault, MODELS)}))
    with pytest.raises(EngineError) as caught:
        await engine.generate(Request(MESSAGES, SAMPLING))
    assert type(caught.value) is EngineError


@pytest.mark.parametrize(
    ("last", "died"), [(status(500), False), (broken(httpx.ConnectError("gone")), True), (status(429), True)]
)
async def test_of_faults_of_several_kinds_the_last_one_counts(last: Handler, died: bool) -> None:
    first = [status(500), status(429), broken(httpx.ReadError("gone"))]
    engine = await opened(Server(**{CHAT: in_turn(*first, last)}))
    with pytest.raises(EngineError) as caught:
        await engine.generate(Request(MESSAGES, SAMPLING))
    assert isinstance(caught.value, EngineDied) == died


async def test_a_server_that_fails_to_count_does_not_hide_why_it_refused() -> None:
    engine = await opened(Server(**{CHAT: status(400, "bad pattern"), COUNT: status(500)}))
    with pytest.raises(InvalidRequest, match="bad pattern"):
        await engine.generate(Request(MESSAGES, SAMPLING))


async def test_the_answer_prefix_is_left_to_the_server() -> None:
    server = Server()
    engine = await opened(
        server, Template(system_role=True, thinking="always", reasoning_parser="p", answer_prefix="<final>")
    )
    await engine.generate(Request(MESSAGES, SAMPLING))
    await engine.count_tokens(MESSAGES)
    assert all(b"<final>" not in r.content for r in server.requests)


async def test_the_served_model_is_found_by_name_or_repository_and_its_context_is_taken() -> None:
    for name in ("own", "org/own"):
        served = {"data": [{"id": "other"}, {"id": name, "max_model_len": 777}]}
        server = Server(**{LIST: served})
        engine = await opened(server)
        await engine.generate(Request(MESSAGES, SAMPLING))
        assert engine.limits.context == 777
        assert server.bodies(CHAT)[0]["model"] == name


async def test_without_a_stated_context_the_profile_s_holds() -> None:
    assert (await opened(Server(**{LIST: {"data": [{"id": "own"}]}}))).limits.context == 4096


@pytest.mark.parametrize(
    ("listing", "told"),
    [
        (broken(httpx.ConnectError("refused")), r"no server answers at .* \(refused\); start it"),
        (broken(httpx.ConnectTimeout("")), r"no server answers at .* \(ConnectTimeout\); start it"),
        (status(404, "nothing here"), "no OpenAI-compatible server .* usually ends in /v1"),
        (status(200, "<html>"), "no OpenAI-compatible server"),
        (status(200, "[" * 100_000), "no OpenAI-compatible server"),
        ([1, 2], "no OpenAI-compatible server"),
        ({"models": []}, "no OpenAI-compatible server"),
        ({"data": [{"name": "own"}]}, "no OpenAI-compatible server"),
        ({"data": ["own"]}, "no OpenAI-compatible server"),
        ({"data": None}, "no OpenAI-compatible server"),
        ({"data": [{"id": "own", "max_model_len": "long"}]}, "no OpenAI-compatible server"),
        (status(401), "refuses access"),
        (status(403), "refuses access"),
        (status(503), "not ready"),
        ({"data": []}, "serves no model"),
        ({"data": [{"id": "a"}, {"id": "b"}]}, "serves a, b, not own"),
    ],
)
async def test_a_server_that_cannot_be_used_is_told_in_one_sentence(listing: Any, told: str) -> None:
    server = Server(**{LIST: listing})
    assert re.search(told, await refusal(server))
    assert server.closed


async def test_stopping_while_it_opens_closes_the_client() -> None:
    server = Server(**{LIST: broken(asyncio.CancelledError)})
    with pytest.raises(asyncio.CancelledError):
        await opened(server)
    assert server.closed


async def test_closing_the_engine_closes_the_client() -> None:
    server = Server()
    engine = await opened(server)
    assert not server.closed
    await engine.aclose()
    assert server.closed


@pytest.mark.parametrize("url", ["http://gpu-box:port/v1", "http://[::/v1"])
async def test_a_url_that_is_none_is_told(url: str) -> None:
    assert "is no URL" in await refusal(Server(), url=url)


async def test_the_key_is_sent_with_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", f"{SECRET}\n")
    server = Server()
    engine = await opened(server, key="LAB_KEY")
    await engine.generate(Request(MESSAGES, SAMPLING))
    await engine.count_tokens(MESSAGES)
    assert [r.headers["Authorization"] for r in server.requests] == [f"Bearer {SECRET}"] * 3


async def test_no_key_is_sent_where_none_is_named() -> None:
    server = Server()
    await opened(server)
    assert "Authorization" not in server.requests[0].headers


@pytest.mark.parametrize("value", [None, "", " \n"])
async def test_an_empty_key_variable_is_told(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("LAB_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("LAB_KEY", value)
    server = Server()
    assert "LAB_KEY is empty" in await refusal(server, "LAB_KEY")
    assert server.requests == []


@pytest.mark.parametrize("value", [f"{SECRET}\nX: y", f"{SECRET}é", f"{SECRET}\x7f"])
async def test_a_key_that_no_header_can_carry_is_told_without_it(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("LAB_KEY", value)
    told = await refusal(Server(), "LAB_KEY")
    assert "LAB_KEY" in told and SECRET not in told


@pytest.mark.parametrize("listing", [status(401), status(404), broken(httpx.ConnectError("refused")), {"data": []}])
async def test_the_key_is_in_no_sentence_about_opening(monkeypatch: pytest.MonkeyPatch, listing: Any) -> None:
    monkeypatch.setenv("LAB_KEY", SECRET)
    assert SECRET not in await refusal(Server(**{LIST: listing}), "LAB_KEY")


@pytest.mark.parametrize("fault", [status(400, "bad"), status(500), broken(httpx.ReadError("gone")), status(200, "?")])
async def test_the_key_is_in_no_error_of_a_request(monkeypatch: pytest.MonkeyPatch, fault: Handler) -> None:
    monkeypatch.setenv("LAB_KEY", SECRET)
    engine = await opened(Server(**{CHAT: fault}), key="LAB_KEY")
    with pytest.raises(EngineError) as caught:
        await engine.generate(Request(MESSAGES, SAMPLING))
    assert SECRET not in str(caught.value)


async def test_a_key_that_is_refused_later_is_not_repeated_from_the_server_s_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAB_KEY", SECRET)
    engine = await opened(Server(**{CHAT: status(401, f"wrong key {SECRET}")}), key="LAB_KEY")
    with pytest.raises(InvalidRequest, match="401") as caught:
        await engine.generate(Request(MESSAGES, SAMPLING))
    assert SECRET not in str(caught.value)


async def test_nothing_listens_on_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(UserError, match=f"no server answers at http://127.0.0.1:{port}/v1"):
        await OpenAIEngine.open(profile(), Address(f"http://127.0.0.1:{port}/v1"))


async def test_conversations_go_to_the_named_server_and_to_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    server = await asyncio.start_server(_list_models, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        engine = await OpenAIEngine.open(profile(), Address(f"http://127.0.0.1:{port}/v1"))
        assert engine.limits.context == 1000
        await engine.aclose()


async def _list_models(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    body = json.dumps(MODELS).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    await writer.drain()
    writer.close()


async def test_a_server_is_sent_no_more_at_once_than_it_takes() -> None:
    class Slow(Server):
        in_flight = peak = 0

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            self.in_flight += 1
            self.peak = max(self.peak, self.in_flight)
            await asyncio.sleep(0.001)
            self.in_flight -= 1
            return await super().handle_async_request(request)

    server = Slow()
    engine = await OpenAIEngine.open(profile(), Address(URL, 3), None, server)
    assert engine.limits.sequences == 3
    await asyncio.gather(*(engine.generate(Request(MESSAGES, SAMPLING)) for _ in range(10)))
    await asyncio.gather(*(engine.count_tokens(MESSAGES) for _ in range(10)))
    assert server.peak == 3
    assert len(server.bodies(CHAT)) == 10
