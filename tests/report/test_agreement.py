"""Agreement as tables, rows and Markdown: all numbers are there, and what is undefined says why."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from vera_local.report.agreement import SCHEMA, agreement_frame, agreement_json, agreement_markdown
from vera_local.report.agreement_terminal import agreement_blocks
from vera_local.score.estimate import Sampling
from vera_local.score.labels import Labels, Rated, Words, gather
from vera_local.score.raters import CONSTANT, ONE_OF_THEM, Question, Report, examine

SAMPLING = Sampling(draws=100, seed=4)
RATERS = ("ann", "bob", "cy", "dan")
ITEMS = {"1": "gggg", "2": "gggb", "3": "bbbb", "4": "bbgb", "5": "gbbb", "6": "bbgg"}
WORD = {"g": "good", "b": "bad | poor"}


@pytest.fixture
def labels() -> Labels:
    """Two dimensions: one with ratings of both kinds, one where everybody says good."""
    varied = [Rated(i, "Warm[th]", r, WORD[w], "") for i, ws in ITEMS.items() for r, w in zip(RATERS, ws, strict=True)]
    flat = [Rated(i, "Safe", r, "good", "") for i in ITEMS for r in RATERS]
    return gather([*varied, *flat], Words(("good", "bad | poor"), ()), chatbots=dict.fromkeys(ITEMS, "gpt"))


@pytest.fixture
def question() -> Question:
    return Question({"raters of the majority": RATERS[:3], "other raters": RATERS[3:]}, RATERS[:3], RATERS[3:])


@pytest.fixture
def report(labels: Labels, question: Question) -> Report:
    return examine(labels, question, SAMPLING)


def shown(labels: Labels, question: Question, report: Report, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    for block in agreement_blocks(labels, question, SAMPLING, report, ["A note."]):
        console.print(block, highlight=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_terminal_shows_each_part(labels: Labels, question: Question, report: Report) -> None:
    text = shown(labels, question, report)
    assert max(map(len, text.splitlines())) <= 80
    for part in (
        "Among 3 raters of the majority: ann, bob, cy",
        "Warm[th]",
        "Cohen's kappa of each pair",
        "Against the majority of 3 raters: ann, bob, cy: all dimensions together",
        "Kappa against it, by dimension",
        "dan (columns) and the majority of 3 raters",
        "Intervals are of 95%: bootstrap over 6 clusters of items, 100 draws, seed 4",
        "because only one category was used.",
        "A note.",
    ):
        assert part in text
    words = " ".join(shown(labels, question, report, 200).split())
    for subject in ("dan", CONSTANT, ONE_OF_THEM):
        assert subject in words


def test_many_raters_are_told_in_a_few_lines(labels: Labels) -> None:
    rows = [Rated(str(i), "x", f"r{r}", "yn"[(i * r) % 3 % 2], "") for i in range(8) for r in range(12)]
    many = gather(rows, Words((), ("y", "n")))
    question = Question({"raters": many.raters})
    text = shown(many, question, examine(many, question, SAMPLING))
    assert "Among 12 raters\n" in text
    assert "66 pairs" in text
    assert "lowest" in text


def test_every_number_is_a_row(labels: Labels, report: Report) -> None:
    frame = agreement_frame(report, labels.words.all)
    assert frame.schema == SCHEMA
    cells = 2 * 2 * 3  # words x words, two dimensions and all
    assert frame.height == len(report.findings) + 4 * 3 + cells + 3 * 3
    told = frame["value"].is_null() & frame["undefined"].is_null()
    assert set(frame.filter(told)["section"]) == {"confusion with the reference", "no majority"}
    assert not frame["value"].is_nan().any()
    unsure = frame.filter(frame["value"].is_not_null() & frame["low"].is_null())
    assert unsure["interval_undefined"].is_not_null().all()


def test_json_says_what_was_compared_and_how(labels: Labels, question: Question, report: Report) -> None:
    found = json.loads(json.dumps(agreement_json(labels, question, SAMPLING, report, ["A note."]), allow_nan=False))
    assert (found["items"], found["clusters"], found["scale"]) == (6, 6, ["good", "bad | poor"])
    assert found["bootstrap"] == {"draws": 100, "seed": 4, "level": 0.95}
    assert found["panels"] == {"raters of the majority": ["ann", "bob", "cy"], "other raters": ["dan"]}
    assert (found["reference"], found["judged"], found["notes"]) == (["ann", "bob", "cy"], ["dan"], ["A note."])
    assert len(found["rows"]) == agreement_frame(report, labels.words.all).height


def test_markdown_has_n_statistic_and_interval(labels: Labels, report: Report) -> None:
    text = agreement_markdown(labels, SAMPLING, report, ["A note."])
    assert "| Subject | Dimension | Statistic | n | Value | 95% interval |" in text
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    for table in tables:
        columns = {line.replace("\\|", "").count("|") for line in table.splitlines() if line.startswith("|")}
        assert len(columns) == 1
    assert "| dan | Warm[th] | sensitivity | bad \\| poor |" in text
    assert "| undefined: only one category was used |" in text
    assert "\n### Confusion with the reference: dan, all\n" in text
    assert text.endswith("- A note.\n")
