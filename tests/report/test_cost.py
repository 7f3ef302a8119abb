"""What GPUs cost is arithmetic, and stands beside what others published."""

from __future__ import annotations

import pytest

from vera_local.report.cost import Cost, cost_json, cost_lines

TWO_GPUS = Cost(hours=1.5, gpus=2, price=3.0, conversations=100)


def test_every_gpu_is_paid_for_all_of_the_time() -> None:
    assert TWO_GPUS.total == 9
    assert TWO_GPUS.each == pytest.approx(0.09)
    assert Cost(1.5, 2, 3.0, 0).each is None
    assert Cost(1.5, 2, 0.0, 5).total == 0


def test_it_is_told_with_how_it_came_about_and_what_to_compare_it_with() -> None:
    own, published = cost_lines(TWO_GPUS)
    assert own == (
        "Cost: 9.00 = 1.500 h of wall time x 2 GPU(s) x 3 per GPU hour; 0.09 for each of 100 conversations, "
        "so 200 like them come to 18.00."
    )
    for word in ("VERA-MH", "about $220", "each provider", "100 personas", "2 conversations", "30 messages", "APIs"):
        assert word in published
    assert "no conversation ended" in cost_lines(Cost(1.5, 2, 3.0, 0))[0]
    assert "Cost: 0.0012 =" in cost_lines(Cost(0.0004, 1, 3.0, 1))[0], "a small cost is not nothing"


def test_json_has_the_same_numbers() -> None:
    told = cost_json(TWO_GPUS)
    assert (told["total"], told["per_conversation"], told["gpus"], told["gpu_hour_price"]) == (9, TWO_GPUS.each, 2, 3)
    assert told["published"]["usd"] == 220
