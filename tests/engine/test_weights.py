"""How many parameters a profile stands for, and their size."""

from __future__ import annotations

import pytest

from vera_local.engine.profile import find_profile, list_profiles
from vera_local.engine.weights import active_parameters, bytes_per_weight, parameters


@pytest.mark.parametrize(
    ("name", "billions", "active", "size"),
    [
        ("qwen3-32b", 32.75, 32.75, 2),
        ("qwen3-32b-fp8", 32.76, 32.76, 1.05),
        ("qwen3-32b-awq", 32.76, 32.76, 0.59),
        ("qwen3-30b-a3b-instruct-2507", 30.55, 3.3, 2),
        ("gpt-oss-120b", 116.8, 5.1, 0.56),
        ("smollm2-135m-instruct", 0.1345, 0.1345, 4),
    ],
)
def test_numbers_and_their_size(name: str, billions: float, active: float, size: float) -> None:
    profile = find_profile(name)
    assert parameters(profile) == pytest.approx(billions * 1e9, rel=0.01)
    assert active_parameters(profile) == pytest.approx(active * 1e9, rel=0.01)
    assert bytes_per_weight(profile) == pytest.approx(size, rel=0.01)


def test_every_shipped_profile_tells_what_a_prediction_needs() -> None:
    for profile in list_profiles():
        assert active_parameters(profile) is not None, profile.name
        size = bytes_per_weight(profile)
        assert size is not None
        assert 0.5 <= size <= 4, profile.name


def test_packed_weights_of_which_nothing_is_said_are_not_guessed() -> None:
    packed = find_profile("qwen3-32b-awq").model_copy(update={"parameters_billion": None})
    assert parameters(packed) is None
    assert active_parameters(packed) is None
    assert bytes_per_weight(packed) is None


def test_weights_asked_for_in_16_bits_are_counted_so() -> None:
    small = find_profile("smollm2-135m-instruct")
    half = small.model_copy(update={"engine": small.engine.model_copy(update={"dtype": "bfloat16"})})
    assert bytes_per_weight(half) == pytest.approx(2)
