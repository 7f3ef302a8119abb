"""A history that outgrows a context: what is left out, what stays, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import ChatMessage, ContextOverflow, Limits, Request, Sampling
from vera_local.engine.window import PAIRS, Context, generate_within

SAMPLING = Sampling(temperature=0.0, top_p=1.0, max_tokens=10, seed=1)


def history(pairs: int) -> tuple[ChatMessage, ...]:
    """A system message, then a user's first message and so many pairs behind it, ten words in each message."""
    said = [ChatMessage("system", "be kind"), ChatMessage("user", f"first {'w ' * 9}")]
    for i in range(pairs):
        said += [ChatMessage("assistant", f"a{i} {'w ' * 9}"), ChatMessage("user", f"u{i} {'w ' * 9}")]
    return tuple(said)


def engine(context: int) -> FakeEngine:
    return FakeEngine(lambda _: "yes", Limits(context=context, kv_tokens=None, sequences=1))


async def test_what_fits_is_sent_as_it_is() -> None:
    host, messages = engine(1000), history(3)
    reply, left_out = await generate_within(host, Request(messages, SAMPLING), Context.WINDOW, head=2)
    assert (reply.text, left_out) == ("yes", 0)
    assert host.requests[0].messages == messages


async def test_with_stop_nothing_is_left_out() -> None:
    with pytest.raises(ContextOverflow):
        await generate_within(engine(60), Request(history(9), SAMPLING), Context.STOP, head=2)


@pytest.mark.parametrize("context", [60, 100, 150, 200])
async def test_the_oldest_pairs_go_and_the_first_and_the_last_messages_stay(context: int) -> None:
    host, messages = engine(context), history(12)
    _, left_out = await generate_within(host, Request(messages, SAMPLING), Context.WINDOW, head=2)
    (sent,) = [r.messages for r in host.requests]
    assert left_out == len(messages) - len(sent) > 0
    assert sent == (*messages[:2], *messages[2 + left_out :])
    assert [m.role for m in sent[1:]] == ["user", "assistant"] * (len(sent[1:]) // 2) + ["user"]
    assert sent[-1] == messages[-1]


async def test_no_more_is_left_out_than_must_be_up_to_a_whole_step() -> None:
    host, messages = engine(150), history(12)
    _, left_out = await generate_within(host, Request(messages, SAMPLING), Context.WINDOW, head=2)
    more = (*messages[:2], *messages[2 + left_out - 2 * PAIRS :])
    assert await host.count_tokens(more) + SAMPLING.max_tokens > host.limits.context


async def test_a_last_message_that_does_not_fit_alone_is_refused() -> None:
    messages = (*history(3)[:-1], ChatMessage("user", "w " * 500))
    with pytest.raises(ContextOverflow):
        await generate_within(engine(100), Request(messages, SAMPLING), Context.WINDOW, head=2)


async def test_a_host_that_counts_more_than_it_tells_is_asked_with_less() -> None:
    host = engine(10_000)
    asked: list[int] = []

    def strict(request: Request) -> str:
        asked.append(len(request.messages))
        if len(request.messages) > 12:
            raise ContextOverflow(9_999, 500)
        return "yes"

    host = FakeEngine(strict, Limits(context=10_000, kv_tokens=None, sequences=1))
    reply, left_out = await generate_within(host, Request(history(20), SAMPLING), Context.WINDOW, head=2)
    assert reply.text == "yes"
    assert asked == [42, 34, 26, 18, 10]
    assert left_out == 32


@given(st.integers(0, 30), st.integers(1, 3), st.integers(30, 400))
async def test_it_answers_or_tells_that_it_cannot(pairs: int, head: int, context: int) -> None:
    host, messages = engine(context), history(pairs)
    head = min(head, len(messages))
    least = (*messages[:head], *messages[head + 2 * max(0, (len(messages) - head - 1) // 2) :])
    possible = await host.count_tokens(least) + SAMPLING.max_tokens <= context
    try:
        await generate_within(host, Request(messages, SAMPLING), Context.WINDOW, head)
    except ContextOverflow:
        assert not possible
    else:
        assert possible
