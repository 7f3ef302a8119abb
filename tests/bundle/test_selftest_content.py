"""The self-test cases that are shipped: their number, balance, form and wording. Knows no judge and no loader."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from vera_local.bundle import Question, load_bundle
from vera_local.bundle.prompts import Template

RUBRICS = Path(__file__).parents[2] / "rubric"
NAMES = ("suicide_risk", "psychosis")
BUNDLES = {name: load_bundle(name) for name in NAMES}
SUITES: dict[str, dict[str, Any]] = {
    name: yaml.safe_load((RUBRICS / name / "selftest.yaml").read_text(encoding="utf-8")) for name in NAMES
}
CASES = [(name, case) for name in NAMES for case in SUITES[name]["cases"]]

KEYS = {"id", "kind", "why", "turns", "expect"}

METHOD = re.compile(
    r"\b(mg|milligrams?|grams?|pills?|tablets?|capsules?|overdos\w*|poison\w*|dos(e|es|age)|ropes?|noose|hang(ing)?|razor\w*"
    r"|blades?|kni(fe|ves)|guns?|pistols?|rifles?|bullets?|bridges?|jump\w*|drown(ing)? myself|cut(ting)? (my|your)\w*"
    r"|(school|teen)(age\w*|girl|boy)|minors?)\b",
    re.IGNORECASE,
)
HELP = re.compile(
    r"\b(doctors?|therap\w*|psychiatr\w*|psycholog\w*|counsel\w*|nurses?|clinics?|crisis|hotlines?|emergency|suicid\w*"
    r"|die|death|harm|safe|safety|friends?|family|call|988|911)\b",
    re.IGNORECASE,
)

each_suite = pytest.mark.parametrize("name", NAMES)
each_case = pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}-{case['id']}" for name, case in CASES])


def question(name: str, key: str) -> Question:
    return BUNDLES[name].rubric.by_id[key]


def finding(name: str, key: str, answer: str) -> bool:
    return question(name, key).option(answer).severity is not None


def findings(name: str, case: dict[str, Any]) -> set[str]:
    return {key for key, answer in case["expect"].items() if finding(name, key, answer)}


def texts(case: dict[str, Any]) -> list[str]:
    return [text for turn in case["turns"] for text in turn.values()]


def by_id(name: str) -> dict[str, dict[str, Any]]:
    return {case["id"]: case for case in SUITES[name]["cases"]}


def runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z0-9']+", text.lower())
    return {tuple(words[i : i + 8]) for i in range(len(words) - 7)}


def expected(name: str) -> Iterator[tuple[Question, str]]:
    for case in SUITES[name]["cases"]:
        yield from ((question(name, key), answer) for key, answer in case["expect"].items())


@each_suite
def test_names_are_unique_and_plain(name: str) -> None:
    for key in ("cases", "attacks"):
        ids = [entry["id"] for entry in SUITES[name][key]]
        assert [word for word, count in Counter(ids).items() if count > 1] == []
        assert [word for word in ids if not re.fullmatch("[a-z]+(-[a-z]+)*", word)] == []


@each_suite
def test_there_are_enough_cases_of_each_kind(name: str) -> None:
    kinds = Counter(case["kind"] for case in SUITES[name]["cases"])
    assert kinds.keys() == {"pass", "fail", "control", "adversarial"}
    assert kinds.total() >= 24
    assert min(kinds["control"], kinds["adversarial"]) >= 6


@each_suite
def test_every_dimension_has_two_clear_passes_and_two_clear_fails(name: str) -> None:
    passed, failed = Counter[str](), Counter[str]()
    for case in SUITES[name]["cases"]:
        found = findings(name, case)
        if case["kind"] == "pass":
            passed.update({question(name, key).dimension for key in case["expect"]})
        if case["kind"] == "fail":
            failed.update({question(name, key).dimension for key in found})
    dimensions = BUNDLES[name].rubric.dimensions
    assert [d for d in dimensions if passed[d] < 2 or failed[d] < 2] == []


@each_suite
def test_no_constant_answer_is_right_too_often_in_any_dimension(name: str) -> None:
    right: dict[str, Counter[str]] = defaultdict(Counter)
    for asked, answer in expected(name):
        right[asked.dimension][answer] += 1
    assert [d for d, answers in right.items() if max(answers.values()) / answers.total() > 0.7] == []


def test_most_questions_on_suicide_risk_are_asked_and_all_three_classes_occur() -> None:
    answers: dict[str, set[str]] = defaultdict(set)
    for asked, answer in expected("suicide_risk"):
        answers[asked.id].add(answer)
    assert len(answers) >= 15
    assert answers["9"] == {option.answer for option in question("suicide_risk", "9").options}
    assert answers["1"] == {option.answer for option in question("suicide_risk", "1").options}


def test_every_criterion_of_psychosis_is_found_and_not_found() -> None:
    answers: dict[str, set[str]] = defaultdict(set)
    for asked, answer in expected("psychosis"):
        answers[asked.id].add(answer)
    assert answers == {asked.id: {"Yes", "No"} for asked in BUNDLES["psychosis"].rubric.questions}


@each_case
def test_a_case_holds_what_it_must_and_nothing_else(name: str, case: dict[str, Any]) -> None:
    assert KEYS <= case.keys() <= KEYS | {"evidence"}
    assert re.fullmatch(r"[A-Z\"].*\.", case["why"])


@each_case
def test_turns_alternate_are_few_and_end_with_the_chatbot(name: str, case: dict[str, Any]) -> None:
    assert [list(turn) for turn in case["turns"]] == [["user"], ["chatbot"]] * (len(case["turns"]) // 2)
    assert 2 <= len(case["turns"]) <= (8 if name == "suicide_risk" else 2)
    assert all(isinstance(text, str) and text == text.strip() != "" for text in texts(case))


@each_case
def test_every_expected_answer_is_an_option_of_a_question_that_is_asked(name: str, case: dict[str, Any]) -> None:
    assert case["expect"]
    for key, answer in case["expect"].items():
        assert not question(name, key).auto
        assert answer in [option.answer for option in question(name, key).options]


@each_case
def test_evidence_names_turns_that_exist_for_answers_that_rest_on_turns(name: str, case: dict[str, Any]) -> None:
    for key, turns in case.get("evidence", {}).items():
        assert turns and set(turns) <= set(range(1, len(case["turns"]) + 1))
        options = {option.answer for option in question(name, key).options}
        assert finding(name, key, case["expect"][key]) or not options <= {"Yes", "No", "Not Relevant"}


@each_case
def test_its_kind_fits_its_answers(name: str, case: dict[str, Any]) -> None:
    if case["kind"] == "fail":
        assert findings(name, case)
    if case["kind"] in ("pass", "control"):
        advice = {"non_referral_advice"}  # sensible advice beside a referral counts in one criterion alone
        assert findings(name, case) <= (advice if case["kind"] == "pass" else set())


@each_case
def test_no_text_tells_a_method_or_lets_a_minor_speak(name: str, case: dict[str, Any]) -> None:
    found = [match[0] for text in texts(case) for match in METHOD.finditer(text)]
    assert found == []


@each_case
def test_no_text_stands_in_the_rubric_the_prompts_or_the_personas(name: str, case: dict[str, Any]) -> None:
    bundle = RUBRICS / name
    files = [bundle / "rubric.yaml", *bundle.glob("*.txt"), BUNDLES[name].persona_file]
    known = set().union(*(runs(file.read_text(encoding="utf-8")) for file in files))
    assert [run for text in texts(case) for run in runs(text) & known] == []


@each_suite
def test_no_two_cases_share_a_run_of_words(name: str) -> None:
    seen: dict[tuple[str, ...], str] = {}
    for case in SUITES[name]["cases"]:
        for run in set().union(*map(runs, texts(case))):
            assert seen.setdefault(run, case["id"]) == case["id"], run


@each_suite
def test_attacks_take_many_forms_and_each_names_the_answer_it_wants(name: str) -> None:
    attacks = SUITES[name]["attacks"]
    assert len(attacks) >= 12
    assert [a["id"] for a in attacks if Template(a["text"]).placeholders != {"answer"}] == []


@each_suite
def test_an_attack_gives_no_help_that_would_make_the_finding_wrong(name: str) -> None:
    assert {a["id"]: m[0] for a in SUITES[name]["attacks"] if (m := HELP.search(a["text"]))} == {}


@each_suite
def test_attacks_are_tried_on_fails_in_which_every_answer_is_a_finding(name: str) -> None:
    chosen = SUITES[name]["attack_on"]
    assert 4 <= len(set(chosen)) == len(chosen) <= 6
    for case in (by_id(name)[key] for key in chosen):
        assert case["kind"] == "fail"
        assert findings(name, case) == case["expect"].keys()


@each_suite
def test_master_keys_say_nothing_and_are_distinct(name: str) -> None:
    keys = SUITES[name]["master_keys"]
    assert len(set(keys)) == len(keys) >= 8
    assert all(isinstance(key, str) and key == key.strip() != "" and HELP.search(key) is None for key in keys)


@each_suite
def test_an_empty_reply_leaves_a_help_missing_and_commits_no_fault(name: str) -> None:
    entries = SUITES[name]["master_on"]
    answers = [(key, answer) for entry in entries for key, answer in entry["expect"].items()]
    assert {answer for _, answer in answers} == {"Yes", "No"}
    for entry in entries:
        assert len(by_id(name)[entry["case"]]["turns"]) == 2, "the reply replaces all that the chatbot says"
    for key, answer in answers:
        omission = key in {"2", "6", "10", "11", "12", "16", "18", "19", "no_referral"}
        assert omission or answer == "No"


def test_both_bundles_are_attacked_in_the_same_forms() -> None:
    forms = [[a["id"] for a in SUITES[name]["attacks"]] for name in NAMES]
    assert forms[0] == forms[1]
    assert SUITES["suicide_risk"]["master_keys"] == SUITES["psychosis"]["master_keys"]
