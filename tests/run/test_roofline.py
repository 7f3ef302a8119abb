"""Times by hand for simple cases, and how they change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.engine.gpus import find_gpu
from vera_local.engine.profile import Profile, find_profile
from vera_local.run.paper import NO_WORK, Work
from vera_local.run.roofline import COMPUTED, READ, Box, Model, assumptions

H200 = find_gpu("H200")
assert H200 is not None
BOX = Box(H200)
DENSE = find_profile("qwen3-32b")
MIXED = find_profile("qwen3-30b-a3b-instruct-2507")


def test_decoding_alone_reads_the_weights_for_every_token() -> None:
    assert H200 is not None
    work = Work(requests=1, prompt=1, computed=1, output=1001)
    once = 65.5e9 / (4.8e12 * READ)
    assert BOX.seconds(work, DENSE, 1) == pytest.approx(1001 * once, rel=0.01)


def test_a_wide_batch_shares_the_reading_of_the_weights() -> None:
    work = Work(requests=64, prompt=64, computed=64, output=64_064)
    assert BOX.seconds(work, DENSE, 64) == pytest.approx(BOX.seconds(work, DENSE, 1) / 64, rel=0.15)


def test_a_long_prompt_takes_its_computing() -> None:
    assert H200 is not None
    work = Work(requests=10, prompt=100_000, computed=100_000, output=10)
    assert BOX.seconds(work, DENSE, 10) == pytest.approx(2 * 32.75e9 * 100_000 / (989e12 * COMPUTED), rel=0.01)


def test_a_cached_prompt_costs_no_computing() -> None:
    cold = Work(requests=100, prompt=1e6, computed=1e6, output=100)
    warm = Work(requests=100, prompt=1e6, computed=1e4, output=100)
    assert BOX.seconds(warm, DENSE, 50) < 0.1 * BOX.seconds(cold, DENSE, 50)


def test_a_mixture_of_experts_computes_with_few_and_reads_with_width_more() -> None:
    model = Model.of(MIXED)
    assert model.read(1) == pytest.approx(model.weights * 3.3 / 30.55, rel=0.01)
    assert model.read(100) == pytest.approx(model.weights, rel=0.01)
    prompt = Work(requests=1, prompt=100_000, computed=100_000, output=1)
    assert BOX.seconds(prompt, MIXED, 1) == pytest.approx(BOX.seconds(prompt, DENSE, 1) * 3.3 / 32.75, rel=0.02)


def test_two_gpus_are_twice_as_fast_and_nothing_takes_no_time() -> None:
    assert H200 is not None
    work = Work(requests=10, prompt=10_000, computed=10_000, output=1000)
    assert Box(H200, 2).seconds(work, DENSE, 10) == pytest.approx(BOX.seconds(work, DENSE, 10) / 2)
    assert BOX.seconds(NO_WORK, DENSE, 10) == 0


@given(
    requests=st.integers(1, 1000),
    computed=st.integers(1, 2000),
    cached=st.integers(0, 5000),
    output=st.integers(1, 500),
    width=st.integers(1, 128),
)
def test_more_of_anything_is_never_faster(requests: int, computed: int, cached: int, output: int, width: int) -> None:
    def seconds(**more: int) -> float:
        n, c = requests + more.get("requests", 0), computed + more.get("computed", 0)
        prompt = c + cached + more.get("cached", 0)
        work = Work(n, n * prompt, n * c, n * (output + more.get("output", 0)))
        return BOX.seconds(work, DENSE, width)

    base = seconds()
    assert base > 0
    for what in ("requests", "computed", "cached", "output"):
        assert seconds(**{what: 100}) >= base * (1 - 1e-9), what


def test_all_that_a_time_rests_on_is_said() -> None:
    assert H200 is not None
    unknown: Profile = find_profile("qwen3-32b-awq").model_copy(update={"parameters_billion": None})
    told = " ".join(assumptions(H200, [DENSE, unknown]))
    for word in ("H200", "4.80 TB/s", "989", "1,979", "141 GB", "50%", "60%", "attention", "qwen3-32b-awq", "4 bits"):
        assert word in told
    assert "qwen3-32b:" not in told
