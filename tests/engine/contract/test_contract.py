"""What every engine keeps, whatever hosts the model."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest

from tests.engine.contract.subject import Subject
from vera_local.engine.grammar import pattern_of
from vera_local.engine.labels import MOST
from vera_local.engine.options import option_probabilities
from vera_local.engine.seam import (
    ChatMessage,
    ContextOverflow,
    Engine,
    Finish,
    InvalidRequest,
    Reply,
    Request,
    Sampling,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

HELLO = (ChatMessage("system", "You are brief."), ChatMessage("user", "Tell me about the sea."))
GREEDY = Sampling(temperature=0.0, top_p=1.0, max_tokens=12, seed=1)
LIVELY = Sampling(temperature=1.0, top_p=1.0, max_tokens=12, seed=1)
FREE = Request(HELLO, GREEDY)
OPTIONS = ("Yes", "No", "Not Relevant")
READING = 1e-3
"""Batches of different sizes round differently: log-probabilities agree to this."""


def longer(request: Request, tokens: int) -> Request:
    return replace(request, sampling=replace(request.sampling, max_tokens=tokens))


def seeded(request: Request, seed: int) -> Request:
    return replace(request, sampling=replace(request.sampling, seed=seed))


async def all_of(engine: Engine, requests: list[Request]) -> list[Reply]:
    return list(await asyncio.gather(*map(engine.generate, requests)))


async def test_a_constrained_answer_is_an_option_that_the_model_ended(subject: Subject) -> None:
    asked = Request(HELLO, LIVELY, pattern_of(OPTIONS))
    for reply in await all_of(subject.engine, [seeded(asked, seed) for seed in range(6)]):
        assert reply.text in OPTIONS
        assert reply.finish is Finish.STOP
        # One more token ended it.
        assert reply.usage.output == len(reply.tokens) + 1 >= 2


async def test_the_seed_decides_and_neighbours_do_not(subject: Subject) -> None:
    asked = Request(HELLO, LIVELY)
    alone = await subject.engine.generate(asked)
    crowd = await all_of(subject.engine, [seeded(asked, seed) for seed in (1, 2, 3, 1)])
    assert alone.text == crowd[0].text == crowd[3].text
    assert alone.tokens == crowd[0].tokens == crowd[3].tokens
    assert len({reply.text for reply in crowd}) > 1


async def test_without_temperature_the_seed_has_no_part(subject: Subject) -> None:
    first, second = await all_of(subject.engine, [FREE, seeded(FREE, 99)])
    assert first.text == second.text
    assert first.finish is Finish.LENGTH
    assert len(first.tokens) == first.usage.output == 12


async def test_an_answer_in_two_parts_is_the_answer_in_one(subject: Subject) -> None:
    whole = await subject.engine.generate(longer(FREE, 8))
    first = await subject.engine.generate(longer(FREE, 4))
    second = await subject.engine.generate(replace(longer(FREE, 4), begun=first.tokens))
    assert first.tokens + second.tokens == whole.tokens
    assert first.text + second.text == whole.text


async def test_what_was_begun_can_be_text(subject: Subject) -> None:
    plain = await subject.engine.generate(FREE)
    begun = await subject.engine.tokens("So, in one word:\n\nAnswer:")
    moved = await subject.engine.generate(replace(FREE, begun=begun))
    assert moved.text != plain.text
    constrained = replace(FREE, begun=begun, pattern=pattern_of(OPTIONS))
    assert (await subject.engine.generate(constrained)).text in OPTIONS


async def test_usage_counts_the_prompt_and_what_was_begun(subject: Subject) -> None:
    begun = await subject.engine.tokens("The sea is")
    plain, moved = await all_of(subject.engine, [FREE, replace(FREE, begun=begun)])
    assert plain.usage.prompt == await subject.engine.count_tokens(HELLO)
    assert moved.usage.prompt == plain.usage.prompt + len(begun)
    assert 0 <= moved.usage.cached <= moved.usage.prompt


async def test_a_request_that_may_think_sends_the_prompt_that_was_counted(subject: Subject) -> None:
    reply = await subject.engine.generate(replace(FREE, thinking=True))
    assert reply.usage.prompt == await subject.engine.count_tokens(HELLO, thinking=True)


async def parts(engine: Engine) -> tuple[Reply, Reply, str]:
    """A free answer, its first tokens, and the text behind these where it does not occur before."""
    whole = await engine.generate(FREE)
    for count in range(3, 10):
        first = await engine.generate(longer(FREE, count))
        stop = whole.text[len(first.text) :][:6]
        if len(stop.strip()) > 2 and whole.text.index(stop) == len(first.text):
            return whole, first, stop
    raise AssertionError(f"{whole.text!r} has no place to stop at")


async def test_a_stop_text_ends_the_answer_before_it(subject: Subject) -> None:
    whole, first, stop = await parts(subject.engine)
    reply = await subject.engine.generate(replace(FREE, stop=stop))
    assert (reply.text, reply.finish) == (first.text, Finish.MARK)
    assert reply.tokens == first.tokens == whole.tokens[: len(first.tokens)]
    assert reply.usage.output > len(reply.tokens)


async def test_a_stop_text_may_begin_within_a_token(subject: Subject) -> None:
    whole, first, stop = await parts(subject.engine)
    reply = await subject.engine.generate(replace(FREE, stop=stop[1:]))
    assert (reply.text, reply.finish) == (whole.text[: whole.text.index(stop[1:])], Finish.MARK)
    assert reply.tokens[: len(first.tokens)] == first.tokens
    further = await subject.engine.generate(replace(longer(FREE, 1), begun=reply.tokens))
    assert further.usage.prompt == whole.usage.prompt + len(reply.tokens)


async def test_a_stop_that_is_not_written_changes_nothing(subject: Subject) -> None:
    plain, stopped = await all_of(subject.engine, [FREE, replace(FREE, stop="zq-17 amber")])
    assert (stopped.text, stopped.finish, stopped.tokens) == (plain.text, plain.finish, plain.tokens)


async def test_a_control_token_can_be_the_stop(subject: Subject) -> None:
    asked = Request(HELLO, GREEDY, pattern_of(["Yes"]))
    plain, stopped = await all_of(subject.engine, [asked, replace(asked, stop=subject.end)])
    assert (plain.text, plain.finish) == ("Yes", Finish.STOP)
    assert (stopped.text, stopped.finish, stopped.tokens) == ("Yes", Finish.MARK, plain.tokens)


async def test_labels_are_probabilities_of_the_first_token(subject: Subject) -> None:
    written = await subject.engine.generate(longer(FREE, 1))
    others = await subject.engine.tokens(" the sea is deep")
    asked = replace(longer(FREE, 1), labels=(*written.tokens, *others))
    read = (await subject.engine.generate(asked)).label_logprobs
    assert read.keys() == {*written.tokens, *others}
    assert sum(map(math.exp, read.values())) <= 1 + READING
    assert read[written.tokens[0]] == pytest.approx(max(read.values()))


async def test_labels_are_read_from_the_model_itself(subject: Subject) -> None:
    labels = await subject.engine.tokens(" the sea is deep")
    begun = await subject.engine.tokens(" the sea")
    asked = replace(longer(FREE, 1), labels=labels, begun=begun)
    odd = Sampling(temperature=1.7, top_p=0.2, max_tokens=1, seed=5, repetition_penalty=1.9)
    alone = [replace(asked, labels=(label,)) for label in labels]
    plain, drawn, *single = await all_of(subject.engine, [asked, replace(asked, sampling=odd), *alone])
    assert drawn.label_logprobs == pytest.approx(plain.label_logprobs, abs=READING)
    for label, reply in zip(labels, single, strict=True):
        assert reply.label_logprobs == pytest.approx({label: plain.label_logprobs[label]}, abs=READING)


async def test_labels_behind_a_written_token_are_those_of_its_continuation(subject: Subject) -> None:
    written = await subject.engine.generate(longer(FREE, 3))
    *begun, last = written.tokens
    asked = replace(longer(FREE, 1), begun=tuple(begun), labels=(last, *await subject.engine.tokens(" sea")))
    read = (await subject.engine.generate(asked)).label_logprobs
    assert read[last] == pytest.approx(max(read.values()))


async def test_labels_that_cannot_be_read_are_refused(subject: Subject) -> None:
    labels = await subject.engine.tokens(" sea")
    with pytest.raises(InvalidRequest, match="without a pattern"):
        await subject.engine.generate(replace(FREE, labels=labels, pattern=pattern_of(OPTIONS)))
    with pytest.raises(InvalidRequest, match=f"at most {MOST}"):
        await subject.engine.generate(replace(FREE, labels=tuple(range(MOST + 1))))


async def test_probabilities_of_options_are_shares_of_one(subject: Subject) -> None:
    found, usage = await option_probabilities(subject.engine, FREE, ["Immediate risk", "Immediate risk now", "No"])
    assert all(share >= 0 for share in found.values())
    assert sum(found.values()) <= 1 + READING
    assert usage.output >= 1


async def test_what_does_not_fit_the_context_fails_alone(subject: Subject) -> None:
    context = subject.engine.limits.context
    huge = replace(FREE, messages=(ChatMessage("user", "word " * context),))
    begun = replace(FREE, begun=await subject.engine.tokens(" sea") * (context - 8))
    asked = [huge, FREE, begun]
    large, fine, long = await asyncio.gather(*map(subject.engine.generate, asked), return_exceptions=True)
    assert isinstance(large, ContextOverflow) and isinstance(long, ContextOverflow)
    assert large.context == long.context == context
    assert large.prompt_tokens > context
    assert isinstance(fine, Reply)


async def test_the_tokens_of_a_text_are_stable_and_control_tokens_are_one(subject: Subject) -> None:
    engine = subject.engine
    assert await engine.tokens("") == ()
    assert await engine.tokens("Not Relevant") == await engine.tokens("Not Relevant") != ()
    assert len(await engine.tokens(subject.end)) == 1
    bridged = await engine.tokens(f"{subject.end}\n\nYes")
    assert bridged[:1] == await engine.tokens(subject.end)
    assert bridged[1:] == await engine.tokens("\n\nYes")


async def test_the_markers_name_the_control_tokens(subject: Subject) -> None:
    assert subject.end in subject.engine.markers
    assert all(len(marker.strip()) > 1 for marker in subject.engine.markers)


@pytest.mark.vllm
async def test_every_route_to_one_model_reads_the_same(vllm_subject: Subject, server_subject: Subject) -> None:
    here, there = vllm_subject.engine, server_subject.engine
    for text in ("Yes", " Not Relevant", "\n\nAnswer:\n", "</think>\n\n", f"{vllm_subject.end}\n", "Ärger", " "):
        assert await here.tokens(text) == await there.tokens(text)
    labels = await here.tokens("Yes No The sea")
    for begun in ((), await here.tokens("The sea\n\nAnswer:\n")):
        asked = replace(longer(FREE, 1), labels=labels, begun=begun)
        first, second = await here.generate(asked), await there.generate(asked)
        assert first.label_logprobs == pytest.approx(second.label_logprobs, abs=READING)
    first, second = await here.generate(FREE), await there.generate(FREE)
    assert (first.text, first.tokens) == (second.text, second.tokens)
