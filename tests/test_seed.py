from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vera_local.seed import derive

PARTS = st.lists(st.one_of(st.integers(), st.text(st.characters(exclude_characters="\x1f", codec="utf-8"))), max_size=4)


@given(st.integers(min_value=0), PARTS)
def test_a_seed_is_a_31_bit_number_that_comes_again(run_seed: int, parts: list[int | str]) -> None:
    seed = derive(run_seed, *parts)
    assert 0 <= seed < 2**31
    assert seed == derive(run_seed, *parts)


def test_seeds_stay_what_they_were_so_that_an_old_run_can_be_continued() -> None:
    assert derive(0, "Ann-1", 2) == 0x253CEACE
    assert derive(7) == 0x3C8134CD


def test_run_and_every_part_count() -> None:
    seeds = [
        derive(0, "Ann-1", 1),
        derive(1, "Ann-1", 1),
        derive(0, "Ann-1", 2),
        derive(0, "Ann-2", 1),
        derive(0, "Ann-1", 1, 0),
        derive(0, 1, "Ann-1"),
    ]
    assert len(set(seeds)) == len(seeds)


def test_neighbouring_parts_do_not_run_together() -> None:
    assert derive(0, "a", "bc") != derive(0, "ab", "c")
    assert derive(1, 1) != derive(11)
