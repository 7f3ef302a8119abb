"""Counts by persona: they add up, and a draw of personas draws all that is theirs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.score import Rating, Scale, ratings_frame, tables
from vera_local.score.intervals import bootstrap_weights
from vera_local.score.tables import count, resampled, together

SCALE = Scale(("good", "fair", "bad"), "n/a", ("Warmth", "Care"), ("g",))
WORDS = [*SCALE.ratings, SCALE.not_relevant, None]
cells = st.dictionaries(
    st.tuples(st.integers(0, 9), st.sampled_from(SCALE.dimensions)), st.sampled_from(WORDS), min_size=1
)


def frame(found: dict[tuple[int, str], str | None]) -> pl.DataFrame:
    """Conversations 0, 3, 6, 9 are of persona P0, and so on; those of P2 have no named persona."""
    names = ["P0", "P1", ""]
    return ratings_frame(Rating(f"c{i}", names[i % 3], "g", 1, "j", d, word) for (i, d), word in found.items())


@settings(deadline=None)
@given(cells)
def test_counts_add_up_to_the_rows(found: dict[tuple[int, str], str | None]) -> None:
    table = count(frame(found), SCALE)
    assert table.ratings.sum() == len(found)
    for d, dimension in enumerate(SCALE.dimensions):
        for w, word in enumerate(WORDS):
            assert table.ratings[:, d, w].sum() == sum(v == word for (_, name), v in found.items() if name == dimension)
    kinds = [
        {i for i, _ in found},
        {i for (i, _), word in found.items() if word in SCALE.ratings},
        {i for (i, _), word in found.items() if word == "bad"},
    ]
    assert table.conversations.sum(axis=0).tolist() == [len(kind) for kind in kinds]


@settings(deadline=None)
@given(cells)
def test_conversations_without_a_named_persona_stand_for_themselves(found: dict[tuple[int, str], str | None]) -> None:
    conversations = {i for i, _ in found}
    expected = len({i % 3 for i in conversations if i % 3 < 2}) + sum(i % 3 == 2 for i in conversations)
    assert len(count(frame(found), SCALE).personas) == expected


@settings(deadline=None, max_examples=20)
@given(cells)
def test_a_draw_takes_whole_personas_from_every_table(found: dict[tuple[int, str], str | None]) -> None:
    table = count(frame(found), SCALE)
    one, two = resampled([table, table], seed=0, draws=50)
    weights = bootstrap_weights(len(table.personas), 50, seed=0)
    expected = np.einsum("dp,piw->diw", weights, table.ratings)
    assert (one.ratings[:, :-1] == expected).all()
    assert (one.ratings[:, -1] == expected.sum(axis=1)).all()
    assert (one.ratings == two.ratings).all() and (one.conversations == two.conversations).all()


def test_tables_of_other_personas_get_the_same_rows() -> None:
    one = count(frame({(0, "Care"): "good", (1, "Care"): "bad", (2, "Care"): "bad"}), SCALE)
    other = count(frame({(1, "Warmth"): "n/a", (2, "Care"): "fair"}), SCALE)
    assert [name.strip("\0") for name in one.personas] == ["c2", "P0", "P1"]
    first, second = together(one, other, {"P1"})
    assert first.personas == second.personas == ("\0c2", "P0", "P1", "\0c2")
    assert [t.conversations[:, 0].tolist() for t in (first, second)] == [[1, 1, 1, 0], [0, 0, 1, 1]]
    assert (first.ratings[:3] == one.ratings).all() and not first.ratings[3].any()
    assert (second.ratings[[3, 2]] == other.ratings).all()


def test_many_personas_are_drawn_by_kind_with_the_same_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {(i, "Care"): WORDS[i % 7 % 5] for i in range(300)}
    table = count(ratings_frame(Rating(f"c{i}", f"P{i}", "g", 1, "j", d, w) for (i, d), w in words.items()), SCALE)
    (one_by_one,) = resampled([table], seed=0)
    monkeypatch.setattr(tables, "MANY", 10)
    (by_kind,) = resampled([table], seed=0)
    assert (by_kind.ratings[:, -1].sum(axis=-1) == 300).all()
    for sums in (one_by_one, by_kind):
        assert sums.ratings[:, -1].mean(axis=0) == pytest.approx(table.ratings.sum(axis=(0, 1)), rel=0.02)
    assert by_kind.ratings.std(axis=0) == pytest.approx(one_by_one.ratings.std(axis=0), rel=0.06)
    assert by_kind.conversations.std(axis=0) == pytest.approx(one_by_one.conversations.std(axis=0), rel=0.06)


def test_no_rows_have_no_personas() -> None:
    table = count(ratings_frame([]), SCALE)
    assert table.ratings.shape == (0, 2, 5) and table.conversations.shape == (0, 3)
