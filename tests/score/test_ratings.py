from __future__ import annotations

import polars as pl
import pytest

from vera_local.score import SCHEMA, Rating, ratings_frame


def test_no_rows_give_an_empty_frame_with_every_column() -> None:
    frame = ratings_frame([])
    assert frame.height == 0
    assert frame.schema == SCHEMA


def test_rows_keep_order_types_and_the_difference_between_null_and_words() -> None:
    rows = [Rating("b", "P", "None", 2, "j", "D", None), Rating("a", "P", "None", 1, "j", "D", "None")]
    frame = ratings_frame(iter(rows))
    assert frame.schema == SCHEMA
    assert frame.rows() == [tuple(row) for row in rows]


def test_a_value_of_the_wrong_type_is_refused() -> None:
    with pytest.raises((TypeError, pl.exceptions.PolarsError)):
        ratings_frame([Rating("a", "P", "Low", "one", "j", "D", None)])  # type: ignore[arg-type]
