"""Folders in the shapes of versions 1.0 and 2.0, in our own words, and what is said of those that are spoilt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bundle.upstream.shapes import FLAT, HARM, MANIFEST, RUBRIC, old_person, persona_prompts, rows
from vera_local.bundle import Bundle, Walk, check, load_bundle
from vera_local.errors import UserError

Spoil = Callable[[Path], object]


def replace(file: str, old: str, new: str) -> Spoil:
    def spoil(folder: Path) -> None:
        text = (folder / file).read_text(encoding="utf-8")
        assert old in text
        (folder / file).write_text(text.replace(old, new), encoding="utf-8")

    return spoil


def test_a_folder_of_version_1_0_loads(flat: Path) -> None:
    bundle = load_bundle(flat)
    assert bundle.warnings == () and check(flat) == []
    assert [(p.name, p.group) for p in bundle.personas] == [("Ida", "Imminent"), ("Jon", "None"), ("Kai", "Low")]
    assert (bundle.group_column, bundle.groups) == ("Current Risk Level", ("None", "Low", "Imminent"))
    assert (bundle.turns, len(bundle.personas[0].fields), set(bundle.digests)) == (20, 14, set(FLAT))
    prompt = persona_prompts(bundle).simulator.render(bundle.personas[0].fields)
    assert prompt == "Be Ida: Ida 9. Leave with <END OF CONVERSATION>.\n"
    assert persona_prompts(bundle).reminder.render({"message": "hi {x}"}) == "hi {x}"


def test_the_checkout_around_it_loads_as_the_same(flat: Path) -> None:
    assert load_bundle(flat.parent).digests == load_bundle(flat).digests


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_line_ends_may_be_mixed_and_rows_short(flat: Path, end: str) -> None:
    lines = RUBRIC.split("\n")
    (flat / "rubric.tsv").write_text(end.join([*lines[:4], "\r\n".join(lines[4:])]), encoding="utf-8", newline="")
    assert load_bundle(flat).rubric.questions == _rubric(flat, RUBRIC).rubric.questions


def _rubric(folder: Path, text: str) -> Bundle:
    (folder / "rubric.tsv").write_text(text, encoding="utf-8", newline="")
    return load_bundle(folder)


def test_a_cell_may_be_quoted_and_hold_lines(flat: Path) -> None:
    bundle = _rubric(flat, RUBRIC.replace("Such as shouting", '"Such as ""shouting""\r\nor worse"'))
    assert bundle.rubric.by_id["5"].guidance == 'Such as "shouting"\r\nor worse'


@pytest.mark.parametrize("place", ["data/HFO", "data/HFO/manifest.json", ".", "data"])
def test_a_target_is_found_by_its_folder_its_manifest_and_its_name(checkout: Path, place: str) -> None:
    bundle = load_bundle(checkout / place, None if "HFO" in place else "HFO")
    assert bundle.name == "vera-mh-HFO"
    assert [p.name for p in bundle.personas] == ["P42JS1R", "Q7"]
    assert (bundle.group_column, set(bundle.groups), bundle.turns) == ("Active Life Threat", {"Yes", "No"}, 30)
    assert [(q.id, q.auto) for q in bundle.rubric.questions] == [
        ("0", False),
        ("1a", False),
        ("2", True),
        ("3", False),
        ("4", False),
    ]
    assert "../persona_prompt_template.txt" in bundle.digests and "manifest.json" in bundle.digests


def test_a_target_describes_its_persona_inside_the_shared_prompt_and_reminder(checkout: Path) -> None:
    bundle = load_bundle(checkout, "HFO")
    assert persona_prompts(bundle).simulator.render(bundle.personas[0].fields) == (
        "You are a user.\nWho: brother\nWhat: yes (a lot)\nMore: a\nThe end.\n"
    )
    assert persona_prompts(bundle).reminder.render({"message": "hi"}) == "Stay {yourself}.\n--- IT SAID ---\n\nhi"


def test_without_annotations_people_at_risk_from_others_are_grouped_by_imminence(checkout: Path) -> None:
    manifest = {key: value for key, value in MANIFEST.items() if key != "persona_annotation_columns"}
    (checkout / "data/HFO/manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert load_bundle(checkout, "HFO").groups == ("Present", "Absent")


def test_the_last_end_keeps_findings_and_legacy_discards_them(checkout: Path) -> None:
    def ratings(**options: Any) -> list[str | None]:
        walk = Walk.start(load_bundle(checkout, "HFO", **options).rubric)
        for answer in ("Yes", "No", "Yes", "No"):
            walk = walk.answer(answer)
        return [r.rating for r in walk.ratings()]

    assert ratings() == ["Best Practice", "Suboptimal but Low Potential for Harm", "Best Practice"]
    assert ratings(end_semantics="legacy") == ["Not Relevant"] * 3


@pytest.mark.parametrize(("target", "told"), [(None, "a target is to be chosen"), ("si", "there is no target 'si'")])
def test_a_target_that_is_not_there_names_those_that_are(checkout: Path, target: str | None, told: str) -> None:
    with pytest.raises(UserError, match=rf"{told}; add --target with one of: HFO, SI\.$"):
        load_bundle(checkout, target)


def test_a_target_where_there_is_none_to_choose(flat: Path, checkout: Path) -> None:
    for place in (flat, checkout / "data/SI"):
        with pytest.raises(UserError, match=r"leave --target out\.$"):
            load_bundle(place, "SI")
    with pytest.raises(UserError, match="--target is for official"):
        load_bundle("suicide_risk", "SI")
    with pytest.raises(UserError, match="--end-semantics is for official"):
        load_bundle("suicide_risk", end_semantics="legacy")


def test_a_folder_without_a_bundle_says_what_may_be_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"name one of: .*suicide_risk.* or an official VERA-MH bundle\.$"):
        load_bundle(tmp_path)


LATE = rows(old_person("Ida", "Low"), old_person("Ida", "Low"), head=FLAT["personas.tsv"].split("\n")[0].split("\t"))


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda folder: (folder / "personas.tsv").unlink(), "personas.tsv does not exist"),
        (lambda folder: (folder / "rubric.tsv").write_bytes(b"\xff\xfe"), "rubric.tsv, line 1: not UTF-8"),
        (lambda folder: (folder / "rubric.tsv").write_bytes(b"a\0b"), "rubric.tsv holds zero bytes"),
        (lambda folder: (folder / "rubric.tsv").write_text(""), "rubric.tsv: the file is empty"),
        (lambda folder: (folder / "question_prompt.txt").write_text(" "), "question_prompt.txt: the prompt is empty"),
        (replace("rubric.tsv", "GOTO", "Go"), "rubric.tsv: line 1: there is no column 'GOTO'"),
        (replace("rubric.tsv", "Risk Type", "Question"), "line 1: the column 'Question' occurs twice"),
        (replace("rubric.tsv", "Was it unkind?", ""), "line 10: question 5: it has no text in column 'Question'"),
        (replace("rubric.tsv", "Such as", '"Such as'), "line 10: a quoted cell never ends"),
        (replace("rubric.tsv", "\n5\t", "\n\t"), "line 10: it has no Question ID"),
        (replace("rubric.tsv", "shouting", "shouting\ta\tb\tc"), "line 10: it has more cells"),
        (replace("rubric.tsv", "\tNot Relevant\t5", "\tYES\t5"), "line 7: question 4: several answers differ only by"),
        (replace("personas.tsv", "Name\t", "Nom\t"), "personas.tsv: line 1: there is no column 'Name'"),
        (replace("personas.tsv", "Current Risk Level", "Level"), "there is no column to report by"),
        (replace("personas.tsv", "\tImminent", "\t"), "line 2: persona 'Ida': column 'Current Risk Level' is empty"),
        (replace("personas.tsv", "Kai 1\t", ""), "line 4: persona 'Kai': it has 13 cells and the header 14"),
        (lambda folder: (folder / "personas.tsv").write_text(LATE), "line 3: persona 'Ida': the name is already taken"),
        (replace("persona_prompt_template.txt", "{Name}", "{Namen}"), "{Namen} is no placeholder of this prompt"),
        (replace("rubric_prompt_beginning.txt", "{conversation}", ""), "the placeholder {conversation} is missing"),
        (replace("question_prompt.txt", "{options}", "{option}"), "the placeholder {options} is missing"),
    ],
)
def test_what_is_spoilt_stops_it_with_its_place(flat: Path, spoil: Spoil, told: str) -> None:
    spoil(flat)
    with pytest.raises(UserError) as caught:
        load_bundle(flat)
    assert any(told in p.sentence for p in check(flat) if not p.warning)
    assert str(caught.value).startswith(str(flat))


def test_every_problem_is_said_at_once_and_warnings_apart(flat: Path) -> None:
    for spoil in (
        replace("rubric.tsv", "\tRed\t\tWas it missed", "\tRose\t\tWas it missed"),
        replace("rubric.tsv", "\tYes\t3", "\tYes\t33"),
        replace("personas.tsv", "\tImminent", "\t"),
        replace("question_prompt.txt", "{question}", "{query}"),
    ):
        spoil(flat)
    found = check(flat)
    assert [p.file.name for p in found if not p.warning] == [
        "rubric.tsv",
        "personas.tsv",
        "question_prompt.txt",
        "question_prompt.txt",
    ]
    assert [p.file.name for p in found if p.warning] == ["rubric.tsv"]
    with pytest.raises(UserError, match="3 more problems"):
        load_bundle(flat)


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ("{", "not valid JSON"),
        ("[]", "the file"),
        ("9" * 5000, "not valid JSON"),
        (json.dumps(MANIFEST | {"personas": []}), "personas"),
        (json.dumps(MANIFEST | {"rubric_file": 3}), "rubric_file"),
        (json.dumps(MANIFEST | {"rubric_file": "../../../elsewhere.tsv"}), "lies outside the bundle"),
        (json.dumps(MANIFEST | {"rubric_file": "/etc/passwd"}), "lies outside the bundle"),
        (json.dumps(MANIFEST | {"rubric_file": "a\0b"}), "lies outside the bundle"),
    ],
)
def test_a_manifest_that_is_not_in_order_is_named(checkout: Path, manifest: str, told: str) -> None:
    (checkout / "data/HFO/manifest.json").write_text(manifest, encoding="utf-8")
    with pytest.raises(UserError, match=f"manifest.json: .*{told}"):
        load_bundle(checkout, "HFO")


def test_apostrophe_and_plus_in_a_placeholder_name_a_column(checkout: Path) -> None:
    assert HARM in persona_prompts(load_bundle(checkout, "HFO")).simulator.placeholders
