from __future__ import annotations

import pytest

from vera_local.report.layout import span
from vera_local.score import Bounds


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (13.84, 100.0, "13.8-100"),
        (99.96, 100.0, "100-100"),
        (0.0, 99.94, "0.0-99.9"),
        (None, 5.0, "-"),
        (5.0, None, "-"),
    ],
)
def test_an_interval_is_short_enough_for_six_beside_a_name(low: float | None, high: float | None, told: str) -> None:
    assert span(Bounds(low=low, high=high, how="by hand")) == told
