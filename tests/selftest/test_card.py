"""Cards as pages, as files and in the cache."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from tests.selftest.small import RUBRIC, SUITE
from vera_local.judge import Mode, State, Verdict
from vera_local.selftest import (
    Answered,
    Card,
    Instrument,
    headline,
    keep,
    kept,
    marks,
    page,
    sittings,
    summary_of,
    write,
)


def card(constant: bool = False, **changed: Any) -> Card:
    def answer(right: str) -> str:
        return right if not constant else "No" if right in ("Yes", "No") else "Low"

    answers = [
        Answered(a, Verdict(a.question.id, State.ANSWERED, answer(a.right), Mode.DIRECT))
        for s in sittings(RUBRIC, SUITE, 2)
        for a in s.askings
    ]
    facts: dict[str, Any] = {
        "judge": "own", "title": "Own | model", "mode": "direct", "temperature": 0.1, "repeats": 2,
        "identity": "i" * 64, "bundle": Instrument(name="small", version="1", digests={"r": "x"}, selftest="d" * 64),
        "vera_local": "0.1.0", "created": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip
    return Card(**(facts | marks(answers) | changed))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VERA_LOCAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_kept_card_is_found_again_under_its_key_alone(cache: Path) -> None:
    made = card()
    keep(made, "key")
    assert kept("key") == made
    assert kept("other") is None
    (file,) = (cache / "judge-cards").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_newer_card_is_kept() -> None:
    keep(card(), "key")
    keep(card(constant=True), "key")
    found = kept("key")
    assert found is not None and found.below_baseline


@pytest.mark.parametrize("content", ["", "{}", "no json", '{"layout": 2}'])
def test_a_card_that_cannot_be_understood_is_none(cache: Path, content: str) -> None:
    keep(card(), "key")
    (cache / "judge-cards" / "key.json").write_text(content, encoding="utf-8")
    assert kept("key") is None


def test_the_files_say_the_same(tmp_path: Path) -> None:
    made = card()
    write(made, tmp_path)
    assert Card.model_validate_json((tmp_path / "card.json").read_bytes()) == made
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == page(made)


def test_the_page_holds_every_number() -> None:
    text = page(card())
    for row in (
        "| First | 5 of 5 | 100.0 % | 56.6 % to 100.0 % | 80.0 % |",
        "| **Overall** | 8 of 8 | 100.0 % | 67.6 % to 100.0 % | 62.5 % |",
        "| adversarial | 2 of 2 | 100.0 % |",
        "| **All** | 0 of 8 | 0.0 % |",
        "| order | 0 of 4 | 0.0 % |",
        "| `:` | 2 of 2 | 100.0 % |",
        "| Same answer all 2 times | 8 of 8 | 100.0 % |",
        "| Named a turn that bears the answer out | 0 of 0 | no data |",
        "| Temperature | 0.1 |",
        "| Model | Own \\| model |",
    ):
        assert row in text


def test_a_page_is_tables_with_as_many_cells_as_their_headers() -> None:
    blocks = [b.split("\n") for b in page(card()).split("\n\n") if b.startswith("|")]
    assert len(blocks) >= 6
    for block in blocks:
        assert len({line.replace("\\|", "").count("|") for line in block}) == 1


def test_a_judge_at_the_baseline_is_told_so_in_plain_words() -> None:
    words = "at or below a constant judge, which never reads the transcript: do not rely on its ratings"
    made = card(constant=True)
    assert made.standing == words
    assert words in headline(made)
    assert f"**A{words[1:]}.**" in page(made)


def test_above_the_baseline_can_still_be_chance() -> None:
    sure, unsure = card(), card(overall=card().overall.model_copy(update={"low": 0.6}))
    assert sure.standing == "above a constant judge"
    assert unsure.standing == "above a constant judge, but chance alone could explain it"
    assert headline(sure) == (
        "8 of 8 right (100.0 %; a constant judge 62.5 %), 0 of 8 right answers turned by attacks: "
        "above a constant judge"
    )


def test_the_summary_puts_the_numbers_that_matter_on_a_line_each() -> None:
    lines = summary_of(card())
    assert lines[0] == "Self-test of own with small 1"
    assert "  Overall: 8 of 8 right (100.0 %; a constant judge 62.5 %)" in lines
    assert "  Right about replies without content: 4 of 4 (100.0 %)" in lines
    assert "  Named a turn that bears the answer out: 0 of 0 (no data)" in lines
    assert lines[-1] == "Above a constant judge."
