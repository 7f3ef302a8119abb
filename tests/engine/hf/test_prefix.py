from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, arange, equal

from vera_local.engine.hf.prefix import KeyValues, Prefixes

IDS = st.lists(st.integers(0, 2), max_size=6).map(tuple)


def values(ids: tuple[int, ...]) -> KeyValues:
    """Two layers whose numbers tell where they are from."""
    tensor: Tensor = arange(len(ids))[None, None, :, None] + 10 * sum(ids)
    return [(tensor, -tensor), (tensor + 1000, tensor)]


def common(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@given(st.lists(IDS, max_size=8), IDS)
@settings(deadline=None)
def test_the_longest_kept_beginning_is_found(prompts: list[tuple[int, ...]], ids: tuple[int, ...]) -> None:
    prefixes = Prefixes(100)
    for prompt in prompts:
        prefixes.keep(prompt, values(prompt))
    found = prefixes.longest(ids)
    kept = [k.ids for k in prefixes._kept]
    assert set(kept) <= set(prompts) and kept[-1:] == prompts[-1:], "the last one is kept always"
    longest = max((common(prompt, ids) for prompt in kept), default=0)
    assert found.ids == ids[:longest]
    beginnings = [
        [(k[..., :longest, :], v[..., :longest, :]) for k, v in values(prompt)]
        for prompt in kept
        if common(prompt, ids) == longest
    ]
    assert not found.ids or any(same(found.values, beginning) for beginning in beginnings)


def same(one: KeyValues, other: KeyValues) -> bool:
    pairs = zip(one, other, strict=True)
    return all(equal(k, other_k) and equal(v, other_v) for (k, v), (other_k, other_v) in pairs)


@given(st.lists(IDS, max_size=12), st.integers(0, 3))
@settings(deadline=None)
def test_no_more_is_kept_than_there_are_slots(prompts: list[tuple[int, ...]], slots: int) -> None:
    prefixes = Prefixes(slots)
    for prompt in prompts:
        prefixes.keep(prompt, values(prompt))
        assert len(prefixes._kept) <= slots


def test_a_prompt_takes_the_place_of_its_like_and_not_of_another() -> None:
    prefixes = Prefixes(2)
    for prompt in ((1, 1, 1, 5), (2, 2, 2, 5), (1, 1, 1, 6), (1, 1, 1, 7)):
        prefixes.keep(prompt, values(prompt))
    assert prefixes.longest((2, 2, 2, 9)).ids == (2, 2, 2)
    assert prefixes.longest((1, 1, 1, 7)).ids == (1, 1, 1, 7)


def test_what_is_forgotten_is_not_found() -> None:
    prefixes = Prefixes(2)
    prefixes.keep((1, 2), values((1, 2)))
    prefixes.clear()
    assert prefixes.longest((1, 2)) == ((), [])
