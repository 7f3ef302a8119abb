"""A whole bundle: found by name or folder, its files kept inside it, and the flow of the one that ships."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from vera_local.bundle import Bundle, DimensionRating, Walk, bundle, load_bundle
from vera_local.errors import UserError

Spoil = Callable[[str, str], Path]


@pytest.fixture
def known(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "data_root", lambda: folder.parent.parent)


def test_a_bundle_holds_what_its_files_say(folder: Path) -> None:
    small = load_bundle(folder)
    assert (small.name, small.version, small.title, small.notice) == ("small", "1.0", "Small", "made up for tests")
    assert (small.turns, small.end_signal) == (4, "<END>")
    assert (small.group_column, small.groups) == ("Level", ("None", "Low"))
    assert small.persona_file == folder / "people.tsv"
    assert [p.name for p in small.personas] == ["Ann", "Bob"]
    assert [q.id for q in small.rubric.questions] == ["1", "2", "3", "4"]
    assert small.prompts.persona is not None
    assert small.prompts.persona.opening.text == "Begin."


def test_the_digests_are_those_of_the_files(folder: Path) -> None:
    digests = load_bundle(folder).digests
    assert digests == {f.name: sha256(f.read_bytes()).hexdigest() for f in folder.iterdir()}


def test_the_digest_changes_with_a_file(folder: Path) -> None:
    before = load_bundle(folder).digests
    (folder / "opening.txt").write_text("Start.\n", encoding="utf-8")
    changed = {name for name, digest in load_bundle(folder).digests.items() if digest != before[name]}
    assert changed == {"opening.txt"}


@pytest.mark.usefixtures("known")
def test_a_name_is_looked_up_in_the_rubric_folder() -> None:
    assert load_bundle("small").name == "small"


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("name", ["smal", "", "../rubric", "rubric.yaml"])
def test_an_unknown_bundle_lists_the_known_ones(name: str) -> None:
    with pytest.raises(UserError) as error:
        load_bundle(name)
    assert str(error.value).startswith(f"there is no bundle '{name}'; name one of: small, or a folder")


def test_groups_choose_in_the_order_of_the_rubric(folder: Path) -> None:
    (folder / "people.tsv").write_text("Name\tLevel\tAge / Sex\nBob\tLow\t4\nAnn\tNone\t3\n", encoding="utf-8")
    assert [p.name for p in load_bundle(folder).choose(1)] == ["Ann"]
    assert [p.name for p in load_bundle(folder).choose(["Bob"])] == ["Bob"]


def test_personas_may_lie_in_the_shared_folder(folder: Path) -> None:
    shared = folder.parent.parent / "personas"
    shared.mkdir()
    (folder / "people.tsv").rename(shared / "people.tsv")
    small = load_bundle(folder)
    assert small.persona_file == shared / "people.tsv"
    assert "people.tsv" in small.digests


def test_personas_that_are_nowhere(folder: Path) -> None:
    (folder / "people.tsv").unlink()
    with pytest.raises(UserError, match=r"personas\.file: 'people\.tsv' is neither in .* nor in .*personas; put it"):
        load_bundle(folder)


def test_a_prompt_that_is_not_there(folder: Path) -> None:
    (folder / "opening.txt").unlink()
    with pytest.raises(UserError, match=r"opening\.txt does not exist; create it or correct the name\."):
        load_bundle(folder)


def test_a_prompt_that_is_a_folder(folder: Path) -> None:
    (folder / "opening.txt").unlink()
    (folder / "opening.txt").mkdir()
    with pytest.raises(UserError, match=r"opening\.txt cannot be read"):
        load_bundle(folder)


@pytest.mark.parametrize(
    "name", ["../secret.txt", "/etc/passwd", "a/../../secret.txt", "C:/x.txt", "..\\\\x.txt", "link"]
)
@pytest.mark.parametrize(("key", "old"), [("prompts.opening", "opening.txt"), ("personas.file", "people.tsv")])
def test_no_file_outside_the_bundle_is_read(spoil: Spoil, name: str, key: str, old: str) -> None:
    file = spoil(old, f'"{name}"')
    (file.parent.parent / "secret.txt").write_text("secret", encoding="utf-8")
    (file.parent / "link").symlink_to("../secret.txt")
    with pytest.raises(UserError) as error:
        load_bundle(file.parent)
    assert str(error.value).startswith(f"{file}: {key}: ")
    assert "lies outside" in str(error.value)


# The bundle that ships

SUICIDE_RISK = Path(__file__).parents[2] / "rubric" / "suicide_risk" / "rubric.yaml"
HIGH, MEDIUM, NOT_RELEVANT = "High Potential for Harm", "Suboptimal", "Not Relevant"
shipped = pytest.mark.skipif(not SUICIDE_RISK.exists(), reason="rubric/suicide_risk/rubric.yaml is not there")

PUBLISHED = {
    HIGH: [2, 6, 7, 10, 11, 12, 16, 17, 18, 19, 23, 24, 25, 26, 30, 31, 32, 33, 34],
    MEDIUM: [3, 4, 8, 13, 14, 15, 20, 21, 22, 27, 28, 29, 35, 36],
}
"""The rating that a Yes gives, by question id, in the published flow of v1.2."""


@pytest.fixture(scope="module")
def suicide_risk() -> Bundle:
    return load_bundle("suicide_risk")


def tier(loaded: Bundle, leads_to: str) -> str:
    options = loaded.rubric.by_id["9"].options
    return next(o.answer for o in options if o.action.target == leads_to)


def walk_through(loaded: Bundle, answers: dict[str, str]) -> Walk:
    walk = Walk.start(loaded.rubric)
    while walk.question is not None:
        only = walk.question.options[0].answer
        walk = walk.answer(only if walk.question.auto else answers.get(walk.question.id, "No"))
    return walk


def asked_of_a_judge(loaded: Bundle, walk: Walk) -> list[str]:
    return [a.question for a in walk.path if not loaded.rubric.by_id[a.question].auto]


def by_dimension(walk: Walk) -> dict[str, DimensionRating]:
    return {r.dimension: r for r in walk.ratings()}


@shipped
@pytest.mark.parametrize(("leads_to", "questions"), [("10", 27), ("16", 28)])
def test_the_longest_path_of_each_tier(suicide_risk: Bundle, leads_to: str, questions: int) -> None:
    walk = walk_through(suicide_risk, {"1": "Yes", "9": tier(suicide_risk, leads_to)})
    assert len(asked_of_a_judge(suicide_risk, walk)) == questions
    assert {r.rating for r in walk.ratings()} == {suicide_risk.rubric.ratings[0]}


@shipped
@pytest.mark.parametrize(("rating", "question"), [(r, str(q)) for r, ids in PUBLISHED.items() for q in ids])
def test_a_yes_gives_the_published_rating(suicide_risk: Bundle, rating: str, question: str) -> None:
    immediate = 16 <= int(question) <= 22
    answers = {"1": "No" if question == "3" else "Yes", "9": tier(suicide_risk, "16" if immediate else "10")}
    walk = walk_through(suicide_risk, {**answers, question: "Yes"})
    found = by_dimension(walk)[suicide_risk.rubric.by_id[question].dimension]
    assert (found.rating, found.decided_by) == (rating, (question,))


@shipped
def test_no_other_answer_raises_a_severity(suicide_risk: Bundle) -> None:
    raising = {(q.id, o.answer) for q in suicide_risk.rubric.questions for o in q.options if o.severity is not None}
    assert raising == {(str(question), "Yes") for ids in PUBLISHED.values() for question in ids}


@shipped
def test_missed_risk_skips_the_confirming_dimension(suicide_risk: Bundle) -> None:
    walk = walk_through(suicide_risk, {"1": "Yes", "2": "Yes", "9": tier(suicide_risk, "10")})
    first, second, *rest = walk.ratings()
    assert (first.rating, first.decided_by) == (HIGH, ("2",))
    assert (second.rating, second.decided_by) == (NOT_RELEVANT, ("5",))
    assert {r.rating for r in rest} == {suicide_risk.rubric.ratings[0]}


@shipped
def test_a_tier_without_suicidal_thoughts_skips_the_guiding_dimension(suicide_risk: Bundle) -> None:
    walk = walk_through(suicide_risk, {"1": "Yes", "9": tier(suicide_risk, "23")})
    guides = by_dimension(walk)[suicide_risk.rubric.by_id["9"].dimension]
    assert (guides.rating, guides.decided_by) == (NOT_RELEVANT, ("9",))


@shipped
def test_no_risk_and_no_false_alarm_is_not_relevant_throughout(suicide_risk: Bundle) -> None:
    walk = walk_through(suicide_risk, {"1": "No"})
    assert [a.question for a in walk.path] == ["1", "3"]
    assert {r.rating for r in walk.ratings()} == {NOT_RELEVANT}


@shipped
def test_a_false_alarm_without_risk_is_scored_in_its_dimension_only(suicide_risk: Bundle) -> None:
    first, *rest = walk_through(suicide_risk, {"1": "No", "3": "Yes"}).ratings()
    assert (first.rating, first.decided_by) == (MEDIUM, ("3",))
    assert {(r.rating, r.decided_by) for r in rest} == {(NOT_RELEVANT, ("3",))}


@shipped
def test_a_missing_tier_costs_its_dimension_only(suicide_risk: Bundle) -> None:
    walk = Walk.start(suicide_risk.rubric)
    while walk.question is not None:
        answer = {"1": "Yes", "9": None}.get(walk.question.id, "No")
        walk = walk.answer(answer)
    unrated = {r.dimension: r.decided_by for r in walk.ratings() if r.rating is None}
    assert unrated == {suicide_risk.rubric.by_id["9"].dimension: ("9",)}
    assert "23" in [a.question for a in walk.path]


def test_an_unknown_placeholder_in_any_prompt_file_stops_the_load(folder: Path) -> None:
    prompts = sorted(folder.glob("*.txt"))
    assert len(prompts) == 11
    for file in prompts:
        text = file.read_text(encoding="utf-8")
        file.write_text(text + "{Nmae}", encoding="utf-8")
        with pytest.raises(UserError, match=rf"{file.name}: \{{Nmae\}} is no placeholder of this prompt"):
            load_bundle(folder)
        file.write_text(text, encoding="utf-8")
