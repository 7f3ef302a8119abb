from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.score.alike import Share, all_alike, pairwise

ANSWERS = st.dictionaries(st.integers(0, 5), st.sampled_from(["Yes", "No", None]))


def test_only_what_all_were_asked_counts_and_no_answer_is_like_no_other() -> None:
    first: dict[str, str | None] = {"q1": "Yes", "q2": "No", "q3": None, "q4": "Yes"}
    second: dict[str, str | None] = {"q1": "Yes", "q2": "Yes", "q3": None, "q5": "No"}
    assert all_alike([first, second]) == Share(1, 3)
    third: dict[str, str | None] = {"q1": "Yes"}
    assert all_alike([first, second, third]) == Share(1, 1)
    unasked: dict[str, str | None] = {}
    assert all_alike([first, unasked]) == Share(0, 0)
    with pytest.raises(ValueError, match="nobody"):
        all_alike([])


def test_pairs_count_what_both_rated() -> None:
    raters: dict[str, dict[int, str | None]] = {
        "a": {1: "good", 2: "bad", 3: None, 4: "bad"},
        "b": {1: "good", 2: "good", 3: "good"},
        "c": {4: "bad"},
    }
    assert pairwise(raters) == {("a", "b"): Share(1, 2), ("a", "c"): Share(1, 1), ("b", "c"): Share(0, 0)}
    assert pairwise({"a": {1: "good"}}) == {}


@given(st.lists(ANSWERS, min_size=1, max_size=4).flatmap(lambda m: st.tuples(st.just(m), st.permutations(m))))
def test_order_changes_nothing_and_a_share_is_no_more_than_all(
    pair: tuple[list[dict[int, str | None]], list[dict[int, str | None]]],
) -> None:
    one, other = all_alike(pair[0]), all_alike(pair[1])
    assert one == other
    assert 0 <= one.alike <= one.total
