"""The transformers engine on a tiny random model: constraints, seeds, neighbours, labels, continuations and ends."""

from __future__ import annotations

import asyncio
import itertools
import math
import re
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from vera_local.bundle import load_bundle
from vera_local.engine.grammar import pattern_of
from vera_local.engine.hf import TransformersEngine
from vera_local.engine.hf.network import device_name
from vera_local.engine.hf.worker import Worker
from vera_local.engine.options import option_probabilities
from vera_local.engine.profile import find_profile
from vera_local.engine.seam import (
    ChatMessage,
    ContextOverflow,
    EngineDied,
    EngineError,
    Finish,
    InvalidRequest,
    Reply,
    Request,
    Sampling,
)

OFFICIAL = Path(__file__).parents[2] / "../shared/data/vera-mh-1.1"
HELLO = (ChatMessage("system", "You are brief."), ChatMessage("user", "Tell me about the sea."))
STORY = (ChatMessage("user", "The sea is wide and the sky is high. " * 30),)
BEGINNINGS = ("Yes", "No", "Not Relevant", "Immediate risk", "Immediate risk now")


def sampling(seed: int = 1, max_tokens: int = 24, temperature: float = 0.9, **more: float) -> Sampling:
    return Sampling(**{"temperature": temperature, "top_p": 0.95, "max_tokens": max_tokens, "seed": seed} | more)  # type: ignore[arg-type]


def greedy(max_tokens: int = 12) -> Sampling:
    return Sampling(temperature=0.0, top_p=1.0, max_tokens=max_tokens, seed=0)


async def ask(engine: TransformersEngine, *requests: Request) -> list[Reply]:
    return list(await asyncio.gather(*map(engine.generate, requests)))


@pytest.fixture(scope="module")
def model(tiny_model_folder: Path) -> Any:
    """The same model as the library itself runs it."""
    return AutoModelForCausalLM.from_pretrained(tiny_model_folder, dtype=torch.float32).eval()


def log_probabilities(model: Any, ids: list[int]) -> torch.Tensor:
    """Of what comes behind `ids`, computed in one go."""
    with torch.inference_mode():
        logits: torch.Tensor = model(torch.tensor([ids]), use_cache=False).logits[0, -1]
    return logits.log_softmax(-1)


def prompt(engine: TransformersEngine, messages: tuple[ChatMessage, ...]) -> list[int]:
    return engine._template.ids(messages)


def option_sets(*bundles: str) -> list[tuple[str, ...]]:
    questions = [q for name in bundles for q in load_bundle(name).rubric.questions]
    return list(dict.fromkeys(tuple(o.answer for o in q.options) for q in questions))


# Constraints


async def constrained(engine: TransformersEngine, sets: list[tuple[str, ...]], seeds: range) -> None:
    asked = [(options, seed) for options in sets for seed in seeds]
    requests = [Request(HELLO, sampling(seed, 200, 1.3), pattern_of(options)) for options, seed in asked]
    for (options, _), reply in zip(asked, await ask(engine, *requests), strict=True):
        assert reply.text in options
        assert reply.finish is Finish.STOP
        assert re.fullmatch(pattern_of(options), reply.text)


async def test_every_answer_over_the_shipped_rubrics_is_an_option(tiny_engine: TransformersEngine) -> None:
    sets = option_sets("suicide_risk", "psychosis")
    # Each set, and each in the other order.
    every = list(dict.fromkeys([*sets, *(options[::-1] for options in sets)]))
    await constrained(tiny_engine, every, range(1 + 50 // len(every)))


async def test_every_answer_over_the_official_rubric_is_an_option(tiny_engine: TransformersEngine) -> None:
    if not OFFICIAL.is_dir():
        pytest.skip(f"the official VERA-MH 1.1 files are not at {OFFICIAL}")
    sets = option_sets(str(OFFICIAL))
    await constrained(tiny_engine, sets, range(1 + 50 // len(sets)))


@pytest.mark.parametrize(
    "options", [BEGINNINGS, ("zq (1)? [a]", "zq* {2} | b"), ("Ärger", "日本", "🙂 fine", "e\N{COMBINING ACUTE ACCENT}")]
)
async def test_every_option_can_be_given_even_one_that_begins_another(
    tiny_engine: TransformersEngine, options: tuple[str, ...]
) -> None:
    # So hot that each allowed token is about as likely as any other.
    requests = [Request(HELLO, sampling(seed, 60, 50.0, top_p=1.0), pattern_of(options)) for seed in range(80)]
    assert {reply.text for reply in await ask(tiny_engine, *requests)} == set(options)


async def test_a_cut_answer_is_told(tiny_engine: TransformersEngine) -> None:
    (reply,) = await ask(tiny_engine, Request(HELLO, sampling(max_tokens=2), pattern_of(["a very long option indeed"])))
    assert reply.finish is Finish.LENGTH
    assert "a very long option indeed".startswith(reply.text)


async def test_a_pattern_that_cannot_be_used_fails_alone(tiny_engine: TransformersEngine) -> None:
    bad, good = Request(HELLO, sampling(), "a(b"), Request(HELLO, sampling())
    results = await asyncio.gather(*map(tiny_engine.generate, (bad, good)), return_exceptions=True)
    assert isinstance(results[0], InvalidRequest)
    assert isinstance(results[1], Reply)


# Seeds and neighbours


async def test_a_seed_decides(tiny_engine: TransformersEngine) -> None:
    replies = await ask(tiny_engine, *(Request(HELLO, sampling(seed)) for seed in (1, 2, 3, 1)))
    assert replies[0].text == replies[3].text
    assert len({reply.text for reply in replies}) == 3


async def test_neighbours_change_no_answer(tiny_engine: TransformersEngine) -> None:
    """Twelve requests of every kind through four places, against each of them alone."""
    texts = (HELLO, STORY, (ChatMessage("user", "a"),))
    draws = (greedy(30), sampling(5, 7), sampling(6, 19, repetition_penalty=1.3), sampling(7, 40, 2.0, top_p=0.5))
    requests = [Request(m, d) for m, d in itertools.product(texts, draws)]
    requests += [Request(m, sampling(8, 60, 2.0), pattern_of(BEGINNINGS)) for m in texts]
    together = await ask(tiny_engine, *requests)
    alone = [await tiny_engine.generate(request) for request in reversed(requests)][::-1]
    assert [r.tokens for r in together] == [r.tokens for r in alone]
    assert [r.finish for r in together] == [r.finish for r in alone]


async def test_greedy_answers_are_those_of_the_library(tiny_engine: TransformersEngine, model: Any) -> None:
    prompts = [HELLO, STORY, (ChatMessage("user", "a"),), (ChatMessage("user", "b"),), (ChatMessage("user", "b c"),)]
    replies = await ask(tiny_engine, *(Request(m, greedy(20)) for m in prompts))
    for messages, reply in zip(prompts, replies, strict=True):
        ids = torch.tensor([prompt(tiny_engine, messages)])
        whole = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=20)[0]
        assert list(reply.tokens) == [t for t in whole[ids.shape[1] :].tolist() if t != 2]


async def test_draws_follow_the_probabilities_of_the_model(tiny_engine: TransformersEngine, model: Any) -> None:
    """300 first tokens against the likeliest one's probability; four standard deviations."""
    probabilities = (log_probabilities(model, prompt(tiny_engine, HELLO)) / 0.5).softmax(-1)
    token = int(probabilities.argmax())
    wanted = float(probabilities[token])
    requests = [Request(HELLO, sampling(seed, 1, 0.5, top_p=1.0)) for seed in range(300)]
    drawn = [reply.tokens[:1] for reply in await ask(tiny_engine, *requests)].count((token,)) / 300
    assert 0.01 < wanted < 0.99
    assert abs(drawn - wanted) < 4 * math.sqrt(wanted * (1 - wanted) / 300)


async def test_a_repetition_penalty_changes_what_is_written(tiny_engine: TransformersEngine) -> None:
    plain, other = await ask(
        tiny_engine,
        Request(HELLO, sampling(1, 40, 0.0)),
        Request(HELLO, sampling(1, 40, 0.0, repetition_penalty=2.0)),
    )
    assert len(set(other.tokens)) > len(set(plain.tokens))


# Labels


@pytest.mark.parametrize("begun", [(), (50, 60, 70)])
async def test_labels_are_the_raw_log_probabilities(
    tiny_engine: TransformersEngine, model: Any, begun: tuple[int, ...]
) -> None:
    labels = (10, 999, 2)
    draw = sampling(1, 1, 1.7, top_p=0.1, repetition_penalty=2.0)
    replies = await ask(tiny_engine, *(Request(m, draw, labels=labels, begun=begun) for m in (HELLO, STORY)))
    for messages, reply in zip((HELLO, STORY), replies, strict=True):
        expected = log_probabilities(model, [*prompt(tiny_engine, messages), *begun])
        assert reply.label_logprobs == {t: pytest.approx(float(expected[t]), abs=1e-4) for t in labels}


async def test_option_probabilities_are_those_over_whole_texts(tiny_engine: TransformersEngine, model: Any) -> None:
    ids = prompt(tiny_engine, HELLO)

    async def begins_with(option: str) -> float:
        path = await tiny_engine.tokens(option)
        steps = [log_probabilities(model, [*ids, *path[:n]])[token] for n, token in enumerate(path)]
        return math.exp(sum(map(float, steps)))

    found, _ = await option_probabilities(tiny_engine, Request(HELLO, greedy(1)), ["No", "Yes"])
    for option, probability in found.items():
        assert probability == pytest.approx(await begins_with(option), abs=1e-3)


@pytest.mark.parametrize(
    "request_", [Request(HELLO, greedy(1), labels=(5000,)), Request(HELLO, greedy(1), "a$", labels=(5,))]
)
async def test_labels_that_cannot_be_read_are_refused(tiny_engine: TransformersEngine, request_: Request) -> None:
    with pytest.raises(InvalidRequest, match=r"one of 2048|without a pattern"):
        await tiny_engine.generate(request_)


# What an answer begins with and what ends it


async def test_an_answer_goes_on_where_it_was_cut(tiny_engine: TransformersEngine) -> None:
    (whole,) = await ask(tiny_engine, Request(HELLO, greedy(16)))
    (first,) = await ask(tiny_engine, Request(HELLO, greedy(6)))
    (rest,) = await ask(tiny_engine, Request(HELLO, greedy(10), begun=first.tokens))
    assert first.tokens + rest.tokens == whole.tokens
    assert first.text + rest.text == whole.text
    assert rest.usage.prompt == first.usage.prompt + 6


async def test_a_begun_answer_is_held_to_the_pattern_from_there(tiny_engine: TransformersEngine) -> None:
    begun = await tiny_engine.tokens("Some thoughts.\n\nAnswer:\n")
    (reply,) = await ask(tiny_engine, Request(HELLO, sampling(3), pattern_of(BEGINNINGS), begun=begun))
    assert reply.text in BEGINNINGS


async def test_a_text_stops_and_is_left_out(tiny_engine: TransformersEngine) -> None:
    (free,) = await ask(tiny_engine, Request(HELLO, greedy(16)))
    # From within one token to within another, which begins nowhere earlier.
    start = len(free.text) // 2
    stop = free.text[start : start + 4]
    before = free.text[: free.text.index(stop)]
    (reply,) = await ask(tiny_engine, Request(HELLO, greedy(16), stop=stop))
    assert (reply.text, reply.finish) == (before, Finish.MARK)
    assert tiny_engine._template.written(reply.tokens) == before
    assert reply.usage.output <= 16


async def test_a_control_token_stops_though_it_is_never_in_the_text(tiny_engine: TransformersEngine) -> None:
    (mark,) = await tiny_engine.tokens("</think>")
    pattern = "(a|b)</think>$"
    (reply,) = await ask(tiny_engine, Request(HELLO, sampling(1), pattern, stop="</think>"))
    assert (reply.text in ("a", "b"), reply.finish) == (True, Finish.MARK)
    assert mark not in reply.tokens
    assert reply.usage.output == len(reply.tokens) + 1


async def test_the_models_own_end_stops_and_is_counted(tiny_engine: TransformersEngine) -> None:
    (reply,) = await ask(tiny_engine, Request(HELLO, sampling(1), pattern_of(["Yes"])))
    assert (reply.text, reply.finish) == ("Yes", Finish.STOP)
    assert reply.usage.output == len(reply.tokens) + 1
    assert reply.tokens == await tiny_engine.tokens("Yes") or tiny_engine._template.written(reply.tokens) == "Yes"


async def test_thinking_is_a_different_prompt(tiny_engine: TransformersEngine) -> None:
    counts = [await tiny_engine.count_tokens(HELLO, thinking=thinking) for thinking in (False, True)]
    replies = await ask(tiny_engine, *(Request(HELLO, greedy(1), thinking=thinking) for thinking in (False, True)))
    assert [r.usage.prompt for r in replies] == counts
    assert counts[0] > counts[1]


async def test_markers_are_the_control_tokens(tiny_engine: TransformersEngine) -> None:
    assert {"<|im_start|>", "<|im_end|>", "<think>", "</think>"} <= set(tiny_engine.markers)


# Limits, usage and the kept prompts


async def test_too_long_a_prompt_fails_alone(tiny_engine: TransformersEngine) -> None:
    assert tiny_engine.limits.context == 16384
    huge = Request(HELLO, sampling(), begun=(50,) * 16384)
    results = await asyncio.gather(
        *map(tiny_engine.generate, (huge, Request(HELLO, sampling()))), return_exceptions=True
    )
    assert isinstance(results[0], ContextOverflow)
    assert results[0].prompt_tokens == await tiny_engine.count_tokens(HELLO) + 16384
    assert isinstance(results[1], Reply)


async def test_what_prompts_share_is_computed_once_and_changes_nothing(
    tiny_engine: TransformersEngine, model: Any
) -> None:
    questions = [(*STORY, ChatMessage("assistant", "I see."), ChatMessage("user", f"Question {n}?")) for n in range(6)]
    replies = [await tiny_engine.generate(Request(m, greedy(1), labels=(10, 20))) for m in questions]
    for (before, messages), reply in zip(itertools.pairwise(questions), replies[1:], strict=True):
        ids, other = prompt(tiny_engine, messages), prompt(tiny_engine, before)
        shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(ids, other, strict=False)))
        assert reply.usage.cached >= shared > 200
        assert reply.usage.computed < 20
        assert reply.label_logprobs[10] == pytest.approx(float(log_probabilities(model, ids)[10]), abs=1e-4)


async def test_a_prompt_longer_than_a_chunk_is_read_whole(tiny_engine: TransformersEngine, model: Any) -> None:
    messages = (ChatMessage("user", "One two three, the sea is wide and the sky is high. " * 250),)
    assert await tiny_engine.count_tokens(messages) > 4096
    (reply,) = await ask(tiny_engine, Request(messages, greedy(1), labels=(10,)))
    expected = float(log_probabilities(model, prompt(tiny_engine, messages))[10])
    assert reply.label_logprobs[10] == pytest.approx(expected, abs=1e-3)


# Life and death


def opened(folder: Path, tmp_path: Path) -> TransformersEngine:
    return TransformersEngine.open(find_profile(str(folder)), folder, tmp_path / "engine.log")


async def test_the_event_loop_stays_free(tiny_engine: TransformersEngine) -> None:
    task = asyncio.create_task(tiny_engine.generate(Request(HELLO, greedy(60))))
    ticks = 0
    while not task.done():
        await asyncio.sleep(0)
        ticks += 1
    assert ticks > 60


async def test_a_request_that_is_called_off_leaves_the_others_alone(tiny_engine: TransformersEngine) -> None:
    requests = [Request(HELLO, sampling(seed, 40)) for seed in range(7)]
    expected = await ask(tiny_engine, *requests)
    tasks = [asyncio.create_task(tiny_engine.generate(request)) for request in requests]
    await asyncio.sleep(0.02)
    for place in (0, 5):
        tasks[place].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(r, asyncio.CancelledError) for r in results] == [n in (0, 5) for n in range(7)]
    assert [r.text for r in results if isinstance(r, Reply)] == [
        r.text for n, r in enumerate(expected) if n not in (0, 5)
    ]


async def test_closing_ends_what_is_asked_and_asked_later(tiny_model_folder: Path, tmp_path: Path) -> None:
    engine = opened(tiny_model_folder, tmp_path)
    tasks = [asyncio.create_task(engine.generate(Request(HELLO, greedy(8000)))) for _ in range(6)]
    await asyncio.sleep(0.05)
    await engine.aclose()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(result) for result in results} == {EngineDied}
    with pytest.raises(EngineDied, match="closed"):
        await engine.generate(Request(HELLO, greedy()))
    assert not engine._worker._thread.is_alive()
    await engine.aclose()


async def test_a_failure_that_is_not_understood_ends_the_engine(
    tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = opened(tiny_model_folder, tmp_path)
    monkeypatch.setattr("vera_local.engine.hf.network.Network.write", raising(RuntimeError("device-side assert")))
    results = await asyncio.gather(
        *(engine.generate(Request(HELLO, sampling(seed))) for seed in range(6)), return_exceptions=True
    )
    assert all(isinstance(r, EngineDied) and "device-side assert" in str(r) for r in results)
    with pytest.raises(EngineDied, match="device-side assert"):
        await engine.generate(Request(HELLO, sampling()))
    await engine.aclose()


@pytest.mark.parametrize("place", ["read", "write"])
async def test_too_little_memory_fails_what_was_running_and_nothing_later(
    tiny_engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(f"vera_local.engine.hf.network.Network.{place}", raising(torch.OutOfMemoryError("no")))
        with pytest.raises(EngineError, match="not enough memory") as caught:
            await tiny_engine.generate(Request(HELLO, sampling()))
    assert not isinstance(caught.value, EngineDied)
    assert (await tiny_engine.generate(Request(HELLO, sampling()))).usage.output


async def test_an_engine_that_hangs_is_left_behind(
    tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, begun, free = opened(tiny_model_folder, tmp_path), threading.Event(), threading.Event()

    def hang(*_: object) -> None:
        begun.set()
        free.wait()

    monkeypatch.setattr("vera_local.engine.hf.worker.CLOSE_SECONDS", 0.05)
    monkeypatch.setattr("vera_local.engine.hf.network.Network.read", hang)
    waiting = asyncio.create_task(engine.generate(Request(HELLO, sampling())))
    await asyncio.to_thread(begun.wait)
    await engine.aclose()
    with pytest.raises(EngineDied, match="closed"):
        await waiting
    assert engine._worker._thread.is_alive()
    free.set()


def raising(error: Exception) -> Any:
    def call(*arguments: Any, **more: Any) -> Any:
        raise error

    return call


def test_a_worker_that_ended_holds_no_model(tiny_model_folder: Path, tmp_path: Path) -> None:
    """The thread's arguments are the only way from the engine to the weights."""
    engine = opened(tiny_model_folder, tmp_path)
    worker: Worker = engine._worker
    asyncio.run(engine.aclose())
    assert not any(hasattr(value, "_network") for value in (*vars(engine).values(), *vars(worker).values()))


@pytest.mark.parametrize(("gpus", "device"), [((), "cuda"), ((2,), "cuda:2")])
def test_its_place_names_the_gpu(monkeypatch: pytest.MonkeyPatch, gpus: tuple[int, ...], device: str) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert device_name(gpus) == device
