from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from vera_local.engine.fake import NEVER, FakeEngine
from vera_local.engine.options import NEGLIGIBLE, option_probabilities
from vera_local.engine.seam import (
    ChatMessage,
    EngineDied,
    EngineError,
    Finish,
    InvalidRequest,
    Reply,
    Request,
    Sampling,
    Usage,
)

ASKED = Request((ChatMessage("user", "how?"),), Sampling(0.7, 0.9, 50, 1, 1.2), pattern="Yes|No", stop="\n")
Model = Callable[[str], Mapping[str, float]]


def reading(model: Model) -> FakeEngine:
    """An engine whose next word is as probable behind a text as `model` says; words it does not know never come."""

    def read(asked: Request) -> Reply:
        following = model(engine.text(asked.begun))
        words = {label: engine.text([label]) for label in asked.labels}
        likely = {i: math.log(following[w]) if following.get(w) else NEVER for i, w in words.items()}
        return Reply("", Finish.LENGTH, Usage(10, 4, 1), likely)

    engine = FakeEngine(read)  # which `read` asks for the words
    return engine


async def probabilities(model: Model, *options: str) -> dict[str, float]:
    found, _ = await option_probabilities(reading(model), ASKED, options)
    return found


async def test_one_read_is_enough_for_options_of_one_token() -> None:
    engine = reading(lambda _: {"Yes": 0.7, "No": 0.2, "Maybe": 0.1})
    found, usage = await option_probabilities(engine, ASKED, ["Yes", "No"])
    assert found == {"Yes": pytest.approx(0.7), "No": pytest.approx(0.2)}
    assert usage == Usage(10, 4, 1)
    (asked,) = engine.requests
    assert (asked.pattern, asked.stop, asked.begun, asked.sampling.max_tokens) == (None, "", (), 1)
    assert asked.messages == ASKED.messages


async def test_options_of_several_tokens_are_followed_to_their_end() -> None:
    table = {"": {"No": 0.3, "Not": 0.5}, "Not": {" Relevant": 0.9}}
    assert await probabilities(lambda begun: table[begun], "No", "Not Relevant") == {
        "No": pytest.approx(0.3),
        "Not Relevant": pytest.approx(0.45),
    }


async def test_an_option_that_begins_another_keeps_what_the_longer_one_does_not_take() -> None:
    table = {"": {"Immediate": 0.8}, "Immediate": {" risk": 0.5}, "Immediate risk": {" now": 0.25, " later": 0.75}}
    for options in (("Immediate risk", "Immediate risk now"), ("Immediate risk now", "Immediate risk")):
        found = await probabilities(lambda begun: table[begun], *options)
        assert list(found) == list(options)
        assert found == {
            "Immediate risk": pytest.approx(0.3),
            "Immediate risk now": pytest.approx(0.1),
        }


async def test_what_was_begun_stands_before_every_read() -> None:
    engine = reading(lambda begun: {"so. Answer:": {"Not": 1.0}, "so. Answer:Not": {" at": 0.5}}[begun])
    begun = await engine.tokens("so. Answer:")
    request = Request(ASKED.messages, ASKED.sampling, begun=begun, thinking=True)
    found, usage = await option_probabilities(engine, request, ["Not at"])
    assert found == {"Not at": pytest.approx(0.5)}
    assert usage == Usage(20, 8, 2)
    assert [asked.thinking for asked in engine.requests] == [True, True]


@pytest.mark.parametrize(("likely", "reads"), [(NEGLIGIBLE * 1.01, 2), (NEGLIGIBLE * 0.99, 1)])
async def test_what_is_negligible_is_not_read_on(likely: float, reads: int) -> None:
    engine = reading(lambda begun: {"": {"Yes": 0.9, "Not": likely}, "Not": {" Relevant": 1.0}}[begun])
    found, _ = await option_probabilities(engine, ASKED, ["Yes", "Not Relevant"])
    assert len(engine.requests) == reads
    assert found["Not Relevant"] == pytest.approx(likely if reads == 2 else 0.0, abs=1e-12)


async def test_siblings_are_read_at_the_same_time() -> None:
    engine = reading(lambda begun: {"a": 0.5, "b": 0.5} if not begun else {" x": 1.0})
    await option_probabilities(engine, ASKED, ["a x", "b x"])
    assert engine.peak == 2


@pytest.mark.parametrize("options", [("Yes", "Yes"), ("",)])
async def test_options_that_no_token_tells_apart_are_refused(options: tuple[str, ...]) -> None:
    with pytest.raises(InvalidRequest, match="no tokens that are its own"):
        await probabilities(lambda _: {}, *options)


@pytest.mark.parametrize("read", [None, math.nan, math.inf, 0.1, 1e6])
async def test_what_is_no_probability_is_refused(read: float | None) -> None:
    def answer(asked: Request) -> Reply:
        return Reply("", Finish.LENGTH, Usage(), {} if read is None else dict.fromkeys(asked.labels, read))

    with pytest.raises(EngineError, match="the log-probability that came back"):
        await option_probabilities(FakeEngine(answer), ASKED, ["Yes", "No"])


@pytest.mark.parametrize(("read", "probability"), [(-math.inf, 0.0), (0.0, 1.0), (1e-7, 1.0)])
async def test_no_chance_and_rounding_are_probabilities(read: float, probability: float) -> None:
    engine = FakeEngine(lambda asked: Reply("", Finish.LENGTH, Usage(), dict.fromkeys(asked.labels, read)))
    assert (await option_probabilities(engine, ASKED, ["Yes"]))[0] == {"Yes": probability}


async def test_what_the_engine_raises_is_raised() -> None:
    def die(_: Request) -> str:
        raise EngineDied("gone")

    with pytest.raises(EngineDied):
        await option_probabilities(FakeEngine(die), ASKED, ["Yes"])


WORDS = (" a", " b", " c")
DEPTH = 3
OPTIONS = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=DEPTH).map("".join), min_size=1, unique=True)


def toy(seed: int) -> Model:
    """A model that draws its next-word distribution, another word's part included, from the text before."""

    @cache
    def following(begun: str) -> dict[str, float]:
        draw = Random(f"{seed} {begun}")
        weights = [draw.random() ** 3 + 0.01 for _ in (*WORDS, " other")]
        return dict(zip((*WORDS, " other"), (w / sum(weights) for w in weights), strict=True))

    return following


def by_brute_force(model: Model, options: Sequence[str]) -> dict[str, float]:
    """Every text of DEPTH words goes to the longest option that it begins with."""
    found = dict.fromkeys(options, 0.0)
    for words in itertools.product((*WORDS, " other"), repeat=DEPTH):
        probability = math.prod(model("".join(words[:i]))[word] for i, word in enumerate(words))
        beginnings = ["".join(words[: i + 1]) for i in range(DEPTH)]
        if held := [b for b in beginnings if b in found]:
            found[held[-1]] += probability
    return found


@settings(deadline=None)
@given(st.integers(0, 10**6), OPTIONS)
async def test_the_probabilities_are_those_of_brute_force(seed: int, options: list[str]) -> None:
    model = toy(seed)
    found = await probabilities(model, *options)
    assert sum(found.values()) <= 1 + 1e-9
    assert found == pytest.approx(by_brute_force(model, options), abs=len(options) * NEGLIGIBLE)


@given(OPTIONS)
async def test_an_engine_that_says_one_option_holds_it_for_certain(options: list[str]) -> None:
    assume(len(options) > 1)
    found, _ = await option_probabilities(FakeEngine(lambda _: options[0]), ASKED, options)
    assert found == {o: pytest.approx(float(o == options[0])) for o in options}
