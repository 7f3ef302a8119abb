from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from vera_local.engine.seam import (
    NO_USAGE,
    ContextOverflow,
    Draw,
    EngineDied,
    EngineError,
    InvalidRequest,
    Limits,
    Usage,
)

TOKENS = st.integers(min_value=0, max_value=10**9)


@given(st.lists(st.builds(Usage, TOKENS, TOKENS, TOKENS)))
def test_usages_add_up_kind_by_kind(usages: list[Usage]) -> None:
    total = reduce(Usage.__add__, usages, NO_USAGE)
    assert total == Usage(sum(u.prompt for u in usages), sum(u.cached for u in usages), sum(u.output for u in usages))
    assert total.computed == sum(u.computed for u in usages)


def test_a_seeded_draw_keeps_all_that_the_role_states() -> None:
    sampling = Draw(0.7, 0.95, 400, 1.2).seeded(5)
    assert (sampling.temperature, sampling.top_p, sampling.max_tokens) == (0.7, 0.95, 400)
    assert (sampling.repetition_penalty, sampling.seed) == (1.2, 5)


def test_an_overflow_says_how_long_the_prompt_is_and_what_there_is_room_for() -> None:
    error = ContextOverflow(5000, 4096)
    assert (error.prompt_tokens, error.context) == (5000, 4096)
    assert "5000" in str(error) and "4096" in str(error)


def test_every_failure_can_be_caught_as_one() -> None:
    assert all(issubclass(kind, EngineError) for kind in (ContextOverflow, InvalidRequest, EngineDied))


def test_a_sequence_keeps_whole_blocks_and_at_most_a_context() -> None:
    limits = Limits(context=100, kv_tokens=1000, sequences=4, block=16)
    assert [limits.kept(tokens) for tokens in (None, 0, 15, 16, 99, 5000)] == [0, 16, 16, 32, 112, 112]
    assert Limits(context=100, kv_tokens=None, sequences=4).kept(50) == 0
