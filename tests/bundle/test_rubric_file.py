"""rubric.yaml: what it becomes, and the sentence that each mistake in it gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vera_local.bundle import checks
from vera_local.bundle.rubric import Action, Do, Option, Question, Rubric
from vera_local.bundle.rubric_file import load_rubric, problems
from vera_local.errors import UserError

Spoil = Callable[[str, str], Path]

YES_1 = '{answer: "Yes", severity: medium, then: go to 2}'
NO_1 = '{answer: "No", then: stop as not relevant}'
PASS_3 = '{answer: "Pass", then: skip dimension to 4}'


def test_a_sound_file_becomes_a_rubric(folder: Path) -> None:
    rubric = load_rubric(folder / "rubric.yaml")
    assert problems(folder / "rubric.yaml") == []
    assert rubric.dimensions == ("First", "Second", "Third")
    assert rubric.severities == {"medium": "Fair", "high": "Bad"}
    assert rubric.by_id["1"].options == (
        Option("Yes", Action(Do.GOTO, "2"), "medium"),
        Option("No", Action(Do.STOP_NOT_RELEVANT)),
    )
    assert rubric.by_id["2"].options == (
        Option("Yes", Action(Do.NEXT_DIMENSION), "high"),
        Option("No", Action(Do.NEXT_QUESTION)),
    )
    assert rubric.by_id["3"] == Question(
        "3", "Second", "Three?", "", (Option("Pass", Action(Do.SKIP_DIMENSION, "4")),), auto=True
    )


@pytest.mark.parametrize(
    ("then", "action"),
    [
        ("next question", Action(Do.NEXT_QUESTION)),
        ("next dimension", Action(Do.NEXT_DIMENSION)),
        ("stop and score", Action(Do.STOP_SCORE)),
        ("go to 3", Action(Do.GOTO, "3")),
    ],
)
def test_the_words_of_then(spoil: Spoil, then: str, action: Action) -> None:
    assert load_rubric(spoil(NO_1, f'{{answer: "No", then: {then}}}')).by_id["1"].options[1].action == action


def test_then_left_out_means_the_next_question(spoil: Spoil) -> None:
    assert load_rubric(spoil(", then: go to 2", "")).by_id["1"].options[0].action == Action(Do.NEXT_QUESTION)


@pytest.mark.parametrize(
    ("old", "new", "place", "remedy"),
    [
        # types and keys
        ("title: Small\n", "", "title", "add it"),
        ("title: Small", "titel: Small\ntitle: Small", "titel", "correct its spelling"),
        ("title: Small", "title: 5", "title", "put it in quotes"),
        ("title: Small", "title: ''", "title", "write a text"),
        ("title: Small", 'title: "Sm\\u202eall"', "title", "holds the character U+202E, which nobody sees; remove it"),
        ("ratings: [Good, Fair, Bad]", 'ratings: ["Go\\u2066od", Fair, Bad]', "ratings", "what nobody sees; remove"),
        ("name: First", 'name: "Fir\\x9bst"', "dimensions", "what nobody sees; remove"),
        ("turns: 4", 'turns: "4"', "turns", "whole number"),
        ("turns: 4", "turns: true", "turns", "whole number"),
        ("turns: 4", "turns: 0", "turns", "at least 2"),
        ("ratings: [Good, Fair, Bad]", "ratings: Good", "ratings", "must be a list"),
        ("ratings: [Good, Fair, Bad]", "ratings: [Good]", "ratings", "at least 2"),
        ("severities: {medium: Fair, high: Bad}", "severities: 3", "severities", "mapping"),
        ("  judge_system: judge_system.txt\n", "", "prompts.judge_system", "add it"),
        ('id: "2"', "id: 2", "dimensions.1.questions.2.id", "put it in quotes"),
        ('answer: "Yes"', "answer: Yes", "question 1: options.1.answer", "put it in quotes"),
        ("auto: true", "auto: 1", "question 3: auto", "true or false"),
        ("then: go to 2", "then: goto 2", "question 1: options.1.then", "one of: next question"),
        ("then: go to 2", "then: go to", "question 1: options.1.then", "go to ID"),
        ("two.\n        severity: high", "two.", "question 2: it has no options", "add options"),
        ("text: One?", "text: One?\n        severity: high", "question 1: it has both", "move the severity"),
        ("        guidance: Count to two.\n", "", "question 2: it has no guidance", "which answer to give when"),
        ("Count to two.", '" "', "question 2: it has no guidance", "which answer to give when"),
        # words
        ("ratings: [Good, Fair, Bad]", "ratings: [Good, Fair, Bad, Bad]", "ratings", "remove one"),
        ("ratings: [Good, Fair, Bad]", 'ratings: ["Good ", Fair, Bad]', "ratings", "remove them"),
        ("not_relevant: Not Relevant", "not_relevant: Good", "not_relevant", "choose another word"),
        ("medium: Fair, high: Bad", "medium: Fair, high: Awful", "severities.high", "use one of 'Fair', 'Bad'"),
        ("medium: Fair, high: Bad", "medium: Good, high: Bad", "severities.medium", "use one of 'Fair', 'Bad'"),
        ("medium: Fair, high: Bad", "high: Bad, medium: Fair", "severities", "mildest rating first"),
        ("name: Third", "name: First", "dimensions: 'First'", "under one entry"),
        ("name: Third", 'name: " Third"', "dimensions: ' Third'", "remove them"),
        # personas
        ("name: Name", "name: Nom", "personas.name", "add it to personas.columns"),
        ("group: Level", "group: Risk", "personas.group", "add it to personas.columns"),
        ('["None", Low]', "[Low, Low]", "personas.groups", "remove one"),
        ("columns: [Name,", "columns: [Name, Name,", "personas.columns", "remove one"),
        # questions
        ('id: "2"', 'id: "1"', "question 1: the id is used twice", "give each question its own"),
        ('id: "2"', 'id: "2 "', "question '2 '", "remove them"),
        (YES_1, '{answer: "Yes", then: go to 9}', "question 1: 'Yes' leads to '9'", "name one"),
        (PASS_3, '{answer: "Pass", then: skip dimension to 9}', "question 3: 'Pass' leads to '9'", "name one"),
        (YES_1, '{answer: "Yes", severity: dire, then: go to 2}', "question 1: the answer 'Yes'", "'medium', 'high'"),
        (NO_1, '{answer: "No", severity: high, then: stop as not relevant}', "question 1: the answer 'No'", "remove"),
        (NO_1, '{answer: "No", severity: high, then: skip dimension to 3}', "question 1: the answer 'No'", "remove"),
        (PASS_3, '{answer: "Pass", severity: high}', "question 3: it is auto", "remove the severity"),
        (PASS_3, '{answer: "A"}, {answer: "B"}', "question 3: it is auto but has 2", "leave exactly one"),
        ("auto: true", "guidance: Pass.", "question 3: it leaves a judge no choice", "at least two options"),
        (NO_1, '{answer: "Yes"}', "question 1: the answer 'Yes'", "remove one"),
        (NO_1, '{answer: "YES"}', "question 1: several answers differ only by case ('yes')", "reword"),
        (NO_1, '{answer: " No"}', "question 1: the answer ' No'", "one plain line"),
        (NO_1, '{answer: "No\\nway"}', "question 1: the answer 'No\\nway'", "one plain line"),
        (NO_1, '{answer: ""}', "question 1: options.2.answer", "write a text"),
        # flow
        (PASS_3, '{answer: "Pass", then: go to 1}', "question 1", "1 -> 2 -> 3 -> 1; let one of them lead on"),
        (PASS_3, '{answer: "Pass", then: go to 3}', "question 3", "3 -> 3; let one of them lead on"),
        (PASS_3, '{answer: "Pass", then: stop and score}', "question 4: no path", "let an answer lead there"),
        (NO_1, '{answer: "No", then: skip dimension to 2}', "question 1: 'No' skips", "lead further on"),
    ],
)
def test_each_mistake_is_one_sentence_with_place_and_remedy(
    spoil: Spoil, old: str, new: str, place: str, remedy: str
) -> None:
    file = spoil(old, new)
    with pytest.raises(UserError) as error:
        load_rubric(file)
    assert str(error.value).startswith(f"{file}: {place}")
    assert remedy in str(error.value)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(problems(file)[0])


@pytest.mark.parametrize(
    ("old", "new", "place", "remedy"),
    [
        ("title: Small", "title: [Small", ", line ", "not valid YAML"),
        (
            "title: Small",
            "title: Small\ntitle: Other",
            ", line 4, column 1: ",
            "the key 'title' is written twice; remove",
        ),
        ("text: One?", "text: One?\n        text: Eins?", ", line 28, column 9: ", "the key 'text' is written twice"),
        ("title: Small", "title: !!python/name:os.system x", ", line 3, column 8: ", "not valid YAML"),
        ("title: Small", "title: 2024-13-45", ": ", "correct that value"),
        ("title: Small", "title: \x07", ": ", "correct that value"),
    ],
)
def test_broken_yaml_names_line_and_column(spoil: Spoil, old: str, new: str, place: str, remedy: str) -> None:
    file = spoil(old, new)
    with pytest.raises(UserError) as error:
        load_rubric(file)
    assert str(error.value).startswith(f"{file}{place}")
    assert remedy in str(error.value)
    assert "\n" not in str(error.value)
    assert problems(file) == [str(error.value)]


def test_further_problems_are_counted_and_listed(spoil: Spoil) -> None:
    spoil("title: Small\n", "")
    spoil("turns: 4", "turns: 0")
    file = spoil('id: "2"', "id: 2")
    assert len(problems(file)) == 3
    with pytest.raises(UserError, match=r"title is missing; add it\. \(2 more problems\.\)$"):
        load_rubric(file)


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_an_empty_file(folder: Path, text: str) -> None:
    (folder / "rubric.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"rubric\.yaml is empty; write a rubric"):
        load_rubric(folder / "rubric.yaml")


def test_a_file_that_is_a_list(folder: Path) -> None:
    (folder / "rubric.yaml").write_text("- 1\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"rubric\.yaml: the file must be a mapping"):
        load_rubric(folder / "rubric.yaml")


def test_a_file_that_is_not_utf8(folder: Path) -> None:
    (folder / "rubric.yaml").write_bytes(b"name: a\ntitle: caf\xe9\n")
    with pytest.raises(UserError, match=r"rubric\.yaml, line 2: not UTF-8 text; save the file as UTF-8"):
        load_rubric(folder / "rubric.yaml")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"rubric\.yaml does not exist; create it"):
        load_rubric(tmp_path / "rubric.yaml")


def test_dimensions_that_are_not_contiguous() -> None:
    options = (Option("Yes", Action(Do.NEXT_QUESTION)), Option("No", Action(Do.NEXT_QUESTION)))
    questions = tuple(Question(str(i), d, "?", "", options) for i, d in enumerate("aba"))
    found = checks.problems(Rubric("r", "1", ("good", "bad"), "nr", {}, ("a", "b"), questions))
    assert len(found) == 1
    assert "not together and in order" in found[0]
