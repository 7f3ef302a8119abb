from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.engine.fake import NEVER, FakeEngine
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
    told = Reply("three words here", Finish.STOP, Usage(prompt=3, output=3), tokens=(0, 1, 2))
    assert await engine.generate(request()) == told


async def test_a_reply_is_given_as_it_is_and_a_handler_may_wait() -> None:
    reply = Reply("cut", Finish.LENGTH, Usage(1, 1, 1), {5: -1.0}, tokens=(7,))

    async def slow(_: Request) -> Reply:
        await asyncio.sleep(0)
        return reply

    assert await FakeEngine(slow).generate(request()) == reply


async def test_a_reply_without_tokens_gets_those_of_its_text() -> None:
    engine = FakeEngine(lambda _: Reply("cut here", Finish.LENGTH, Usage()))
    reply = await engine.generate(request())
    assert reply == Reply("cut here", Finish.LENGTH, Usage(), tokens=await engine.tokens("cut here"))
    assert engine.text(reply.tokens) == "cut here"


@given(st.text(st.sampled_from("ab \n<>|"), max_size=30))
async def test_tokens_and_text_undo_each_other_and_markers_are_tokens_of_their_own(text: str) -> None:
    engine = FakeEngine(lambda _: "", markers=("<|a|>", "<b>"))
    ids = await engine.tokens(text)
    assert engine.text(ids) == text
    assert engine.markers == ("<|a|>", "<b>")
    marks = [engine.text([i]) for i in ids if engine.text([i]) in engine.markers]
    assert len(marks) == text.count("<|a|>") + text.count("<b>")


async def test_an_answer_goes_on_behind_what_was_begun() -> None:
    def go_on(asked: Request) -> str:
        return "Yes" if engine.text(asked.begun) == "because it is.\n\nAnswer:\n" else "because it is. Answer: no"

    engine = FakeEngine(go_on)
    first = await engine.generate(replace(request(), stop=" Answer:"))
    begun = first.tokens + await engine.tokens("\n\nAnswer:\n")
    second = await engine.generate(replace(request(), begun=begun))
    assert (second.text, second.usage.prompt) == ("Yes", first.usage.prompt + len(begun))


@pytest.mark.parametrize(
    ("stop", "told", "finish", "output"),
    [
        ("</think>", "so be it ", Finish.MARK, 4),
        ("be", "so ", Finish.MARK, 2),
        ("never", "so be it </think>\n\nYes", Finish.STOP, 5),
        ("", "so be it </think>\n\nYes", Finish.STOP, 5),
    ],
)
async def test_the_text_ends_before_the_stop(stop: str, told: str, finish: Finish, output: int) -> None:
    engine = FakeEngine(lambda _: "so be it </think>\n\nYes", markers=["</think>"])
    reply = await engine.generate(replace(request(), stop=stop))
    assert (reply.text, reply.finish, engine.text(reply.tokens)) == (told, finish, told)
    assert reply.usage.output == output


@pytest.mark.parametrize(
    ("begun", "likely"),
    [([], "Not"), (["so\n\nAnswer:\n"], "Not"), (["Not"], " Relevant"), (["so\n\nAnswer:\n", "Not"], " Relevant")],
)
async def test_a_text_answers_a_label_read_with_its_next_token(begun: list[str], likely: str) -> None:
    engine = FakeEngine(lambda _: "Not Relevant")
    labels = await engine.tokens("No Not Relevant") + await engine.tokens("Not")
    ids = [i for text in begun for i in await engine.tokens(text)]
    reply = await engine.generate(replace(request(), labels=labels, begun=tuple(ids)))
    assert reply.label_logprobs == {i: 0.0 if engine.text([i]) == likely else NEVER for i in labels}
    assert (reply.text, engine.text(reply.tokens), reply.usage.output) == (likely, likely, 1)


async def test_a_text_that_was_said_to_its_end_makes_no_label_likely() -> None:
    engine = FakeEngine(lambda _: "Immediate risk")
    *begun, now = await engine.tokens("Immediate risk now")
    reply = await engine.generate(replace(request(), labels=(now,), begun=tuple(begun)))
    assert (reply.text, reply.label_logprobs, reply.finish) == ("", {now: NEVER}, Finish.STOP)


async def test_permission_to_think_counts() -> None:
    engine = FakeEngine(lambda _: "yes")
    plain, thinking = await engine.generate(request()), await engine.generate(replace(request(), thinking=True))
    assert thinking.usage.prompt == plain.usage.prompt + 1
    assert await engine.count_tokens(request().messages, thinking=True) == thinking.usage.prompt


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
