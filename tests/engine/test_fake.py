from __future__ import annotations

import asyncio

import pytest

from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import (
    ChatMessage,
    ContextOverflow,
    Engine,
    Finish,
    InvalidRequest,
    Limits,
    Reply,
    Request,
    Sampling,
    Usage,
)


def request(text: str = "one two", max_tokens: int = 5) -> Request:
    return Request((ChatMessage("user", text),), Sampling(0.0, 1.0, max_tokens, 1))


async def test_text_becomes_a_reply_with_a_word_as_a_token() -> None:
    engine: Engine = FakeEngine(lambda _: "three words here")
    assert await engine.generate(request()) == Reply("three words here", Finish.STOP, Usage(prompt=3, output=3))


async def test_a_reply_is_given_as_it_is_and_a_handler_may_wait() -> None:
    reply = Reply("cut", Finish.LENGTH, Usage(1, 1, 1))

    async def slow(_: Request) -> Reply:
        await asyncio.sleep(0)
        return reply

    assert await FakeEngine(slow).generate(request()) is reply


async def test_what_the_handler_raises_is_raised_and_the_request_is_no_longer_held() -> None:
    engine = FakeEngine(_refuse)
    for _ in range(2):
        with pytest.raises(InvalidRequest):
            await engine.generate(request())
    assert engine.peak == 1


def _refuse(_: Request) -> str:
    raise InvalidRequest("no")


async def test_it_remembers_what_was_asked_and_how_much_at_once() -> None:
    engine = FakeEngine(lambda _: "yes")
    asked = [request(str(i)) for i in range(3)]
    await asyncio.gather(*(engine.generate(r) for r in asked))
    await engine.generate(asked[0])
    assert engine.requests == [*asked, asked[0]]
    assert engine.peak == 3


@pytest.mark.parametrize(("max_tokens", "fits"), [(7, True), (8, False)])
async def test_prompt_and_answer_have_to_fit_the_context(max_tokens: int, fits: bool) -> None:
    engine = FakeEngine(lambda _: "yes", Limits(context=10, kv_tokens=None, sequences=1))
    assert await engine.count_tokens(request().messages) == 3
    if fits:
        assert (await engine.generate(request(max_tokens=max_tokens))).text == "yes"
    else:
        with pytest.raises(ContextOverflow) as caught:
            await engine.generate(request(max_tokens=max_tokens))
        assert (caught.value.prompt_tokens, caught.value.context) == (3, 10)


async def test_closing_shows() -> None:
    engine = FakeEngine(lambda _: "yes")
    assert not engine.closed
    await engine.aclose()
    assert engine.closed
