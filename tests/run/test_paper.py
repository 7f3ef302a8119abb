"""An engine on paper counts as engines do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.engine.fake import FakeEngine
from vera_local.engine.options import option_probabilities
from vera_local.engine.seam import ChatMessage, ContextOverflow, Finish, Request, Sampling
from vera_local.run.paper import BY_CHARACTERS, NO_WORK, Paper, Ruler, Work

WORDS = Ruler(lambda text: len(text.split()), 1, "a word is a token", end=0)


def request(*texts: str, **more: object) -> Request:
    messages = tuple(ChatMessage("assistant" if i % 2 else "user", text) for i, text in enumerate(texts))
    return Request(messages, Sampling(0, 1, 10, 0), **more)  # type: ignore[arg-type]


async def test_it_counts_as_the_fake_engine_does() -> None:
    paper, fake = Paper(WORDS, 100, lambda r: "three words here"), FakeEngine(lambda r: "three words here")
    asked = request("one two", "three", "four five six")
    reply = await fake.generate(asked)
    assert (await paper.generate(asked)).text == "three words here"
    work = paper.take()
    assert (work.requests, work.prompt, work.output) == (1, reply.usage.prompt, reply.usage.output)
    assert paper.take() == NO_WORK


async def test_a_history_that_goes_on_is_cached_but_for_what_is_new() -> None:
    paper = Paper(WORDS, 10_000, lambda r: "answer " * 50)
    await paper.generate(request("question " * 100))
    first = paper.take()
    assert first.computed == first.prompt
    await paper.generate(request("question " * 100, "answer " * 50, "more " * 10))
    second = paper.take()
    assert second.prompt == pytest.approx(163)
    assert second.computed == pytest.approx(11, abs=4)
    assert second.cached == second.prompt - second.computed


async def test_another_conversation_shares_what_it_begins_with() -> None:
    paper = Paper(WORDS, 10_000, lambda r: "answer")
    await paper.generate(request("system " * 90 + "own " * 10))
    paper.take()
    paper.begin()
    await paper.generate(request("system " * 90 + "else " * 10))
    assert paper.take().computed == pytest.approx(10, abs=3)


async def test_it_goes_back_to_a_cache_it_had() -> None:
    paper = Paper(WORDS, 10_000, lambda r: "answer")
    cache = paper.here()
    await paper.generate(request("text " * 100))
    paper.back(cache)
    paper.take()
    await paper.generate(request("text " * 100))
    assert paper.take().computed == 101


async def test_what_does_not_fit_is_refused_as_an_engine_refuses_it() -> None:
    paper = Paper(WORDS, 20, lambda r: "answer")
    with pytest.raises(ContextOverflow):
        await paper.generate(request("word " * 10))
    assert paper.take() == NO_WORK


async def test_probabilities_can_be_read_and_answers_gone_on_with() -> None:
    paper = Paper(WORDS, 1000, lambda r: f"why {r.stop}" if r.stop else "Not Relevant")
    found, _ = await option_probabilities(paper, request("which?"), ["Yes", "Not Relevant"])
    assert found == {"Yes": 0.0, "Not Relevant": 1.0}
    assert paper.take().requests == 2
    reply = await paper.generate(request("why?", stop="Answer:"))
    assert reply.finish is Finish.MARK
    begun = (*reply.tokens, *await paper.tokens("\n\nAnswer:\n"))
    paper.take()
    await paper.generate(request("why?", begun=begun, pattern="(Yes|Not Relevant)$"))
    work = paper.take()
    assert work.prompt == 4
    assert work.computed < 3


@pytest.mark.parametrize("ruler", [WORDS, BY_CHARACTERS])
@given(tokens=st.integers(1, 500))
def test_a_text_of_a_length_has_about_that_length(ruler: Ruler, tokens: int) -> None:
    assert ruler.measure(ruler.text_of(tokens)) == pytest.approx(tokens, abs=2)


def test_work_adds_up() -> None:
    assert Work(1, 10, 4, 2) + Work(1, 5, 5, 1) == Work(2, 15, 9, 3)
    assert Work(1, 10, 4, 2) * 2.5 == Work(2.5, 25, 10, 5)
    assert Work(1, 10, 4, 2).cached == 6
