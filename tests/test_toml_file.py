"""Tables as TOML and back."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vera_local.toml_file import written

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
PLAIN = st.recursive(
    TEXT | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(TEXT, PLAIN, max_size=5))
def test_what_is_written_reads_back(table: dict[str, Any]) -> None:
    assert tomllib.loads(written(table)) == table


def test_none_is_left_out_and_tables_have_their_heads() -> None:
    text = written({"a": None, "t": {"x": 1, "y": None}, "many": [{"k": "v"}, {"k": None}], "last": True})
    assert tomllib.loads(text) == {"t": {"x": 1}, "many": [{"k": "v"}, {}], "last": True}
    assert text.startswith("last = true\n") and "[[many]]" in text and "[t]" in text
