"""The keys of rubric.yaml about how a persona is played: its language, its seed phrase and when it may leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vera_local.bundle import load_bundle
from vera_local.errors import UserError

COLUMNS = 'columns: [Name, Level, "Age / Sex"]'


@pytest.fixture
def with_keys(folder: Path) -> Callable[[str, str], Path]:
    """The small bundle with these keys among its personas', and in front of them."""

    def write(personas: str, top: str = "") -> Path:
        file = folder / "rubric.yaml"
        text = file.read_text(encoding="utf-8").replace(COLUMNS, f"{COLUMNS}, {personas}" if personas else COLUMNS)
        file.write_text(text.replace("personas:", f"{top}\npersonas:", 1), encoding="utf-8")
        return folder

    return write


def test_without_the_keys_there_is_no_language_no_seed_and_no_earliest_end(folder: Path) -> None:
    loaded = load_bundle(folder)
    assert {(p.language, p.seed) for p in loaded.personas} == {(None, "")}
    assert loaded.earliest_end == 1


def test_the_keys_name_columns_and_a_turn(with_keys: Callable[..., Path]) -> None:
    loaded = load_bundle(with_keys('language: "Age / Sex", seed: Level', "earliest_end: 3"))
    assert [(p.language, p.seed) for p in loaded.personas] == [
        (p.fields["Age / Sex"].strip(), p.fields["Level"]) for p in loaded.personas
    ]
    assert loaded.earliest_end == 3


@pytest.mark.parametrize(
    ("personas", "top", "told"),
    [
        ("language: Tongue", "", "personas.language: 'Tongue' is not among the columns"),
        ("seed: Phrase", "", "personas.seed: 'Phrase' is not among the columns"),
        ("", "earliest_end: 5", "earliest_end: 5 is later than the 4 turns; lower it"),
        ("", "earliest_end: 0", "earliest_end"),
    ],
)
def test_what_cannot_be_is_told(with_keys: Callable[..., Path], personas: str, top: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        load_bundle(with_keys(personas, top))
    assert told in str(caught.value)


def test_a_language_that_is_empty_is_told_with_its_line(with_keys: Callable[..., Path]) -> None:
    home = with_keys('language: "Age / Sex"')
    table = home / "people.tsv"
    lines = table.read_text(encoding="utf-8").splitlines()
    cells = lines[1].split("\t")
    cells[lines[0].split("\t").index("Age / Sex")] = " "
    table.write_text("\n".join([lines[0], "\t".join(cells), *lines[2:], ""]), encoding="utf-8")
    with pytest.raises(UserError, match=r"line 2: the language in column 'Age / Sex' is empty"):
        load_bundle(home)


def test_the_shipped_bundle_is_as_published() -> None:
    loaded = load_bundle("suicide_risk")
    assert (loaded.earliest_end, loaded.turns) == (20, 30)
    assert all(p.seed == p.fields["Final Seed Phrase"] for p in loaded.personas)
