"""Bundles with scripted openings, controls, temperatures, or without a word for Not Relevant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from vera_local.bundle import DimensionRating, Walk, load_bundle
from vera_local.bundle.rubric_file import load_rubric, problems
from vera_local.errors import UserError

Spoil = Callable[[str, str], Path]

RUBRIC = """\
name: told
version: "1.0"
title: Told
notice: made up for tests
ratings: [Safe, Unsafe]
severities: {unsafe: Unsafe}
turns: 2
personas:
  file: people.tsv
  name: Name
  group: Kind
  groups: [case, control]
  columns: [Name, Kind, Story]
  opening: Story
  controls: {column: Kind, value: control}
sampling: {chatbot: {temperature: 0.7}, judge: {temperature: 0}}
prompts:
  judge_system: judge_system.txt
  judge_transcript: judge_transcript.txt
  judge_question: judge_question.txt
  judge_question_short: judge_question_short.txt
dimensions:
  - name: First
    questions:
      - {id: "1", text: "One?", guidance: "Any is Yes.", severity: unsafe}
  - name: Second
    questions:
      - {id: "2", text: "Two?", guidance: "Any is Yes.", severity: unsafe}
"""
PEOPLE = "Name\tKind\tStory\nAnn\tcase\t They hum. \nBob\tcontrol\tI hum.\n"
SIMULATOR = ("simulator", "simulator_short", "simulator_examples", "simulator_notes", "opening", "reminder")


@pytest.fixture
def told(folder: Path) -> Path:
    """The folder of a sound bundle whose personas say one scripted message."""
    (folder / "rubric.yaml").write_text(RUBRIC, encoding="utf-8")
    (folder / "people.tsv").write_text(PEOPLE, encoding="utf-8")
    return folder


@pytest.fixture
def change(told: Path, spoil: Spoil) -> Spoil:
    return spoil


def test_the_opening_is_the_cell_as_it_stands(told: Path) -> None:
    ann, bob = load_bundle(told).personas
    assert (ann.opening, ann.control) == (" They hum. ", False)
    assert (bob.opening, bob.control) == ("I hum.", True)


def test_without_the_keys_nothing_is_scripted_and_nobody_a_control(folder: Path) -> None:
    small = load_bundle(folder)
    assert not small.has_openings
    assert small.available(controls=False) == small.personas
    assert small.temperatures == {}


def test_only_the_prompts_that_are_used_are_read(told: Path) -> None:
    for name in (*SIMULATOR, "chatbot"):
        (told / f"{name}.txt").unlink()
    loaded = load_bundle(told)
    assert (loaded.prompts.persona, loaded.prompts.chatbot, loaded.end_signal) == (None, None, "")
    assert set(loaded.digests) == {f.name for f in told.iterdir()}


def test_controls_are_chosen_only_on_demand(told: Path) -> None:
    loaded = load_bundle(told)
    assert [p.name for p in loaded.choose(1)] == ["Ann"]
    assert [p.name for p in loaded.choose(2, controls=True)] == ["Ann", "Bob"]
    with pytest.raises(UserError, match=r"^'Bob' is a control; add --controls, or name another persona\.$"):
        loaded.choose(["Ann", "Bob"])
    with pytest.raises(UserError, match="choose a number from 1 to 1"):
        loaded.choose(2)


def test_temperatures_are_numbers_by_role(told: Path) -> None:
    assert load_bundle(told).temperatures == {"chatbot": 0.7, "judge": 0.0}


@pytest.mark.parametrize("key", SIMULATOR)
def test_a_prompt_for_a_simulator_is_refused_where_none_is_asked(change: Spoil, key: str) -> None:
    file = change("prompts:\n", f"prompts:\n  {key}: {key}.txt\n")
    (problem,) = problems(file)
    assert problem.startswith(f"{file}: prompts.{key} is for a model that plays a persona")
    assert problem.endswith("remove it.")


@pytest.mark.parametrize("key", SIMULATOR)
def test_each_prompt_for_a_simulator_is_needed_where_one_is_asked(spoil: Spoil, key: str) -> None:
    file = spoil(f"  {key}: {key}.txt\n", "")
    assert problems(file) == [f"{file}: prompts.{key} is missing; add it."]


def test_more_turns_than_the_opening_need_a_simulator(change: Spoil) -> None:
    file = change("turns: 2", "turns: 4")
    missing = ["end_signal", *(f"prompts.{key}" for key in SIMULATOR)]
    assert sorted(problems(file)) == sorted(f"{file}: {key} is missing; add it." for key in missing)


@pytest.mark.parametrize(
    ("old", "new", "place", "remedy"),
    [
        ("opening: Story", "opening: Tale", "personas.opening: 'Tale'", "add it to personas.columns"),
        ("controls: {column: Kind", "controls: {column: Sort", "personas.controls.column: 'Sort'", "add it to"),
        ("controls: {column: Kind, value: control}", "controls: {column: Kind}", "personas.controls.value", "add it"),
        ("turns: 2", 'turns: 2\nend_signal: "<END>"', "end_signal is for a model that plays a persona", "remove it"),
        ("{temperature: 0.7}", "{temperature: 3}", "sampling.chatbot.temperature", "at most 2"),
        ("{temperature: 0.7}", "{temperature: -1}", "sampling.chatbot.temperature", "at least 0"),
        ("{temperature: 0.7}", "{temperature: warm}", "sampling.chatbot.temperature", "must be a number"),
        ("{temperature: 0.7}", "{temperature: true}", "sampling.chatbot.temperature", "must be a number"),
        ("{temperature: 0.7}", "{heat: 1}", "sampling.chatbot.temperature", "add it"),
        ("judge: {temperature: 0}", "jury: {temperature: 0}", "sampling.jury", "correct its spelling"),
    ],
)
def test_each_mistake_is_named(change: Spoil, old: str, new: str, place: str, remedy: str) -> None:
    file = change(old, new)
    with pytest.raises(UserError) as error:
        load_rubric(file)
    assert str(error.value).startswith(f"{file}: {place}")
    assert remedy in str(error.value)


@pytest.mark.parametrize(
    ("people", "sentence"),
    [
        ("Ann\tcase\t  \nBob\tcontrol\tx\n", "line 2: the first message in column 'Story' is empty; write it there"),
        ("Ann\tcase\tx\n", "there are no controls, rows with 'control' in column 'Kind'; correct the rows"),
        ("Bob\tcontrol\tx\n", "there are only controls, rows with 'control' in column 'Kind'; correct the rows"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(told: Path, people: str, sentence: str) -> None:
    (told / "people.tsv").write_text(f"Name\tKind\tStory\n{people}", encoding="utf-8")
    with pytest.raises(UserError) as error:
        load_bundle(told)
    assert sentence in str(error.value)


# Without a word for Not Relevant every dimension has to be rated.


def test_every_dimension_is_rated_for_itself(told: Path) -> None:
    walk = Walk.start(load_bundle(told).rubric).answer("Yes").answer(None)
    assert walk.ratings() == (DimensionRating("First", "Unsafe", ("1",)), DimensionRating("Second", None, ("2",)))


def with_options(told: Path, question: int, *options: dict[str, str]) -> Path:
    file = told / "rubric.yaml"
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    entry = content["dimensions"][question - 1]["questions"][0]
    entry.pop("severity", None)
    entry["options"] = [{"answer": "Yes"}, *options]
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("question", "then", "problem"),
    [
        (1, "stop as not relevant", "question 1: 'No' makes its dimension Not Relevant"),
        (2, "stop as not relevant", "question 2: 'No' makes its dimension Not Relevant"),
        (1, "skip dimension to 2", "question 1: 'No' makes its dimension Not Relevant"),
        (1, "stop and score", "question 1: a walk can end there without a question of 'Second'"),
    ],
)
def test_an_answer_that_leaves_a_dimension_out_is_refused(told: Path, question: int, then: str, problem: str) -> None:
    file = with_options(told, question, {"answer": "No", "then": then})
    assert problems(file)[0].startswith(f"{file}: {problem}; lead on to every dimension, or add not_relevant")
    text = file.read_text(encoding="utf-8")
    file.write_text(text + "not_relevant: Not Relevant\n", encoding="utf-8")
    assert problems(file) == []


def test_a_dimension_that_a_path_jumps_over_is_found(told: Path) -> None:
    file = told / "rubric.yaml"
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    content["dimensions"].append(
        {"name": "Third", "questions": [{"id": "3", "text": "Three?", "guidance": "Any.", "severity": "unsafe"}]}
    )
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    with_options(told, 1, {"answer": "No", "then": "go to 3"})
    assert [p.split(": ", 1)[1] for p in problems(file)] == [
        "question 3: a walk can end there without a question of 'Second'; "
        "lead on to every dimension, or add not_relevant."
    ]
