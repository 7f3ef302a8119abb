from __future__ import annotations

import csv
import io
import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.report.cells import cell, cells, unmarked

TEXTS = st.text(alphabet="'=+-@\t\r\n\uff1dab\",;", max_size=8)


@pytest.mark.parametrize("text", ['=HYPERLINK("http://x";"y")', "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\uff1d1+1"])
def test_no_cell_begins_like_a_formula(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "Yes", "a=b", "'", "' quoted'", "1-2", "don't"])
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert cell(text) == text


@given(TEXTS)
def test_reading_back_gives_the_same_text(text: str) -> None:
    assert unmarked(cell(text)) == text
    assert not re.match(r"[=+\-@\t\r\n]", cell(text))


@settings(deadline=None)
@given(st.lists(TEXTS | st.none(), min_size=1, max_size=5))
def test_a_frame_is_marked_as_its_texts_are(texts: list[str | None]) -> None:
    frame = pl.DataFrame(
        {"text": texts, "number": [-1.5] * len(texts)}, schema={"text": pl.String, "number": pl.Float64}
    )

    marked = cells(frame)

    assert marked["text"].to_list() == [None if text is None else cell(text) for text in texts]
    assert marked["number"].to_list() == frame["number"].to_list()
    rows = list(csv.reader(io.StringIO(marked.write_csv(), newline="")))[1:]
    assert [unmarked(row[0]) for row in rows] == [text or "" for text in texts]
