"""docs/bundles.md, held to what the program does: its example, its keys and its steps."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from pydantic import BaseModel

from vera_local.bundle import Do, Walk, check, load_bundle, schema

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "bundles.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^`([\w.]+)`[^\n]*:\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
KEYS = {
    key
    for part in vars(schema).values()
    if isinstance(part, type) and issubclass(part, BaseModel)
    for key in part.model_fields
}


def table(head: str) -> list[list[str]]:
    """The cells of each row below the line that starts with `head`."""
    lines = PAGE[PAGE.index(f"\n{head}") + 1 :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def rows() -> list[tuple[str, list[str]]]:
    """Of the table of outcomes: the answers and the rating of each dimension."""
    return [(answers, ratings) for answers, *ratings in table("| answers |")]


@pytest.fixture
def sleep(tmp_path: Path) -> Path:
    """The example, written as the page says."""
    for name, text in BLOCKS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for prompt in (ROOT / "rubric" / "suicide_risk").glob("judge_*.txt"):
        shutil.copy(prompt, tmp_path)
    return tmp_path


def test_the_example_is_sound_and_short(sleep: Path) -> None:
    assert BLOCKS.keys() == {"rubric.yaml", "sleep.tsv"}
    assert check(sleep) == []
    dimensions = BLOCKS["rubric.yaml"].partition("\ndimensions:\n")[2]
    assert len(dimensions.splitlines()) <= 12


def test_the_example_has_the_personas_it_shows(sleep: Path) -> None:
    bundle = load_bundle(sleep)
    assert [(p.name, p.group) for p in bundle.personas] == [("Ana", "Adult"), ("Ben", "Teenager")]
    assert bundle.prompts.persona is None
    assert all(p.opening and p.opening in BLOCKS["sleep.tsv"] for p in bundle.personas)


@pytest.mark.parametrize(("answers", "ratings"), rows(), ids=[answers for answers, _ in rows()])
def test_the_answers_give_the_ratings_it_says(sleep: Path, answers: str, ratings: list[str]) -> None:
    walk = Walk.start(load_bundle(sleep).rubric)
    for question, answer in re.findall(r"(\w+): ([\w ]+)", answers):
        assert walk.question is not None and walk.question.id == question
        walk = walk.answer(None if answer == "no verdict" else answer)
    assert [r.rating or "Unrated" for r in walk.ratings()] == ratings


def test_every_kind_of_rating_is_shown() -> None:
    assert {rating for _, ratings in rows() for rating in ratings} == {
        "Good",
        "Weak",
        "Harmful",
        "Not Relevant",
        "Unrated",
    }


@pytest.mark.parametrize("key", sorted(KEYS))
def test_every_key_is_explained(key: str) -> None:
    explained = PAGE[PAGE.index("## Keys of") :]
    assert re.search(rf"`[^`\n]*\b{key}\b[^`\n]*`", explained)


def test_every_step_is_explained_and_no_other() -> None:
    steps = [re.findall(r"`([^`]+)`", name)[0] for name, _ in table("| `then` |")]
    assert [schema.parse_then(step).do for step in steps] == [do for do in Do if do is not Do.STOP_DISCARD]


def test_the_readme_leads_to_the_page() -> None:
    assert "(docs/bundles.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
