"""Every beginning is known for as long as it is used, and memory is bounded."""

from __future__ import annotations

from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from vera_local.engine.seen import Seen

FEW_LETTERS = st.lists(st.text("ab", max_size=12).map(str.encode), max_size=12)


@given(texts=FEW_LETTERS)
def test_what_is_shared_is_the_longest_common_beginning(texts: list[bytes]) -> None:
    seen = Seen()
    for n, text in enumerate(texts):
        assert seen.add(text) == max((same(text, before) for before in texts[:n]), default=0)


def same(one: bytes, other: bytes) -> int:
    """How many first bytes two texts share, one by one."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def test_what_is_used_again_outlives_what_is_not() -> None:
    seen = Seen(room=1_000)
    seen.add(b"used" * 20)
    seen.add(b"once" * 20)
    for n in range(50):
        seen.add(f"{n:03}".encode() * 30)
        assert seen.add(b"used" * 20) == 80
    assert seen.add(b"once" * 20) < 4, "forgotten"


def test_a_text_that_two_generations_hold_in_parts_is_known_by_the_longer_part() -> None:
    seen = Seen(room=500)
    seen.add(b"history" * 10)
    seen.add(b"something else" * 10)
    assert seen.add(b"history, told otherwise") == 7
    assert seen.add(b"history" * 10) == 70


def test_nothing_is_known_once_all_is_forgotten() -> None:
    seen = Seen()
    seen.add(b"text")
    seen.forget()
    assert seen.add(b"text") == 0
