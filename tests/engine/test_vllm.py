"""The real vLLM engine on CPU with the embedded model: constraints, seeds, labels, limits and the prefix cache."""

from __future__ import annotations

import asyncio
import math
import re
from dataclasses import replace

import pytest

from vera_local.bundle import load_bundle
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.grammar import pattern_of
from vera_local.engine.probe import probe_constraint, probe_history, probe_labels, probe_system
from vera_local.engine.seam import ChatMessage, ContextOverflow, Draw, Finish, Request, Sampling
from vera_local.engine.vllm import VllmEngine
from vera_local.judge import Judge, State, Verdict
from vera_local.judge.exhibit import exhibit

pytestmark = [pytest.mark.vllm, pytest.mark.asyncio(loop_scope="session")]

HELLO = (ChatMessage("system", "You are brief."), ChatMessage("user", "Tell me about the sea."))
LONG = (ChatMessage("user", "The sea is wide and the sky is high. " * 300),)


def sampling(seed: int = 1, max_tokens: int = 24, temperature: float = 0.8) -> Sampling:
    return Sampling(temperature=temperature, top_p=0.95, max_tokens=max_tokens, seed=seed)


async def test_limits_are_learned_from_the_engine(vllm_engine: VllmEngine) -> None:
    limits = vllm_engine.limits
    assert limits.context == 8192
    assert limits.kv_tokens is not None
    # One GiB at 46,080 bytes per token, in whole blocks.
    assert 22_000 < limits.kv_tokens <= 2**30 // 46_080
    assert limits.kv_tokens % limits.block == 0


async def test_a_seed_decides_and_neighbours_do_not(vllm_engine: VllmEngine) -> None:
    alone = await vllm_engine.generate(Request(HELLO, sampling(1)))
    crowd = await asyncio.gather(*(vllm_engine.generate(Request(HELLO, sampling(seed))) for seed in (1, 2, 3, 1)))
    assert alone.text == crowd[0].text == crowd[3].text
    assert len({reply.text for reply in crowd}) == 3


async def test_a_long_prompt_with_a_seed_does_not_end_the_engine(vllm_engine: VllmEngine) -> None:
    """Prefilled in chunks, it made vLLM 0.32 rewind a generator that a CPU has not, and the engine died."""
    assert await vllm_engine.count_tokens(LONG) > 2048
    replies = await asyncio.gather(*(vllm_engine.generate(Request(LONG, sampling(seed, 4))) for seed in range(6)))
    assert all(reply.usage.output for reply in replies)


@pytest.mark.parametrize(
    "options", [("Yes", "No"), ("No", "Not Relevant"), ("zq (1)? [a]", "zq* {2} | b"), ("Ärger", "日本", "🙂 fine")]
)
async def test_a_constrained_answer_is_an_option(vllm_engine: VllmEngine, options: tuple[str, ...]) -> None:
    for seed in range(4):
        request = Request(HELLO, sampling(seed, max_tokens=40, temperature=1.5), pattern_of(options))
        reply = await vllm_engine.generate(request)
        assert reply.text in options
        assert reply.finish is Finish.STOP


async def test_an_option_that_begins_with_another_can_be_given(vllm_engine: VllmEngine) -> None:
    """outlines_core ended at "No" and never offered "Not Relevant", until the pattern got its anchor."""
    prompt = (ChatMessage("user", 'Write exactly these two words: "Not Relevant".'),)
    pattern = pattern_of(["Yes", "No", "Not Relevant"])
    requests = [Request(prompt, sampling(seed, 12, temperature=1.0), pattern) for seed in range(24)]
    answers = {reply.text for reply in await asyncio.gather(*map(vllm_engine.generate, requests))}
    assert answers <= {"Yes", "No", "Not Relevant"}
    assert "Not Relevant" in answers


async def test_a_cut_answer_is_told(vllm_engine: VllmEngine) -> None:
    reply = await vllm_engine.generate(Request(HELLO, sampling(max_tokens=2), pattern_of(["a very long option"])))
    assert reply.finish is Finish.LENGTH


async def test_too_long_a_prompt_fails_alone(vllm_engine: VllmEngine) -> None:
    huge = Request((ChatMessage("user", "word " * 9000),), sampling())
    fine = Request(HELLO, sampling())
    results = await asyncio.gather(vllm_engine.generate(huge), vllm_engine.generate(fine), return_exceptions=True)
    assert isinstance(results[0], ContextOverflow)
    assert results[0].prompt_tokens > results[0].context == 8192
    assert not isinstance(results[1], BaseException)


async def test_labels_are_read_without_a_constraint(vllm_engine: VllmEngine) -> None:
    reply = await vllm_engine.generate(Request(HELLO, sampling(max_tokens=1, temperature=0.0), labels=(10, 20, 30)))
    assert reply.label_logprobs.keys() == {10, 20, 30}
    assert all(math.isfinite(p) and p < 0 for p in reply.label_logprobs.values())


async def test_a_control_token_within_an_answer_is_one_of_its_tokens_and_can_be_the_stop(
    vllm_engine: VllmEngine,
) -> None:
    """Behind the end of a message the model opens the next one, with a token that no text shows."""
    begun = await vllm_engine.tokens("The sea is wide.<|im_end|>\n")
    free = Request(HELLO, sampling(max_tokens=4, temperature=0.0), begun=begun)
    whole, stopped = await asyncio.gather(
        vllm_engine.generate(free), vllm_engine.generate(replace(free, stop="<|im_start|>"))
    )
    opening = await vllm_engine.tokens("<|im_start|>")
    assert whole.tokens[:1] == opening and "<|im_start|>" not in whole.text
    assert (stopped.text, stopped.finish, stopped.tokens) == ("", Finish.MARK, ())


async def test_usage_counts_what_the_template_makes(vllm_engine: VllmEngine) -> None:
    reply = await vllm_engine.generate(Request(HELLO, sampling(max_tokens=5)))
    assert reply.usage.prompt == await vllm_engine.count_tokens(HELLO)
    assert reply.usage.output == 5


async def test_the_probes_pass(vllm_engine: VllmEngine) -> None:
    for probe in (probe_constraint, probe_system, probe_history, probe_labels):
        assert await probe(vllm_engine, "embedded")


def a_conversation(name: str) -> Conversation:
    """Eight turns of about 100 tokens each."""
    texts = [f"This is what {name} says in turn {n}, and the bus was late again. " * 6 for n in range(8)]
    speakers = (Speaker.PERSONA, Speaker.CHATBOT)
    messages = tuple(Message(speakers[n % 2], text) for n, text in enumerate(texts))
    return Conversation(f"{name}-1", name, 1, messages, Ending.TURNS)


async def test_each_transcript_is_prefilled_once(vllm_engine: VllmEngine) -> None:
    """Over all questions, computed prompt tokens are at most 1.15 x (prefix once + question parts), blocks apart."""
    bundle = load_bundle("suicide_risk")
    full = Judge("embedded", vllm_engine, Draw(0.0, 1.0, 24), bundle.prompts, bundle.prompts.judge_question, seed=4)
    judge = replace(full, evidence=False, confidence=False)
    asked = [q for q in bundle.rubric.questions if not q.auto]

    async def ask_all(conversation: Conversation) -> list[Verdict]:
        return [await judge.ask(exhibit(conversation, 4), question) for question in asked]

    conversations = [a_conversation(name) for name in ("Ann", "Bo", "Cy")]
    for conversation, verdicts in zip(conversations, await asyncio.gather(*map(ask_all, conversations)), strict=True):
        assert {v.state for v in verdicts} == {State.ANSWERED}
        prompts = [vllm_engine._template.ids(judge.prompt(exhibit(conversation, 4), q)) for q in asked]
        prefix = next(i for i, column in enumerate(zip(*prompts, strict=False)) if len(set(column)) > 1)
        bound = 1.15 * (prefix + sum(len(p) - prefix for p in prompts)) + vllm_engine.limits.block * len(asked)
        assert prefix > 600
        assert sum(v.usage.prompt for v in verdicts) == sum(len(p) for p in prompts)
        assert sum(v.usage.computed for v in verdicts) <= bound


async def test_every_answer_over_the_whole_rubric_is_one_of_its_options(vllm_engine: VllmEngine) -> None:
    bundle = load_bundle("suicide_risk")
    for question in bundle.rubric.questions:
        options = [o.answer for o in question.options]
        request = Request(HELLO, sampling(7, max_tokens=60, temperature=1.2), pattern_of(options))
        reply = await vllm_engine.generate(request)
        assert reply.text in options
        assert re.fullmatch(pattern_of(options), reply.text)
