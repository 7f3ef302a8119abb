"""The psychosis bundle that ships: its vignettes, their controls and its seven criteria."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations

import pytest

from vera_local.bundle import Bundle, Persona, Question, Walk, load_bundle

BUNDLE = load_bundle("psychosis")
CONTROLS = [p for p in BUNDLE.personas if p.control]
VIGNETTES = [p for p in BUNDLE.personas if not p.control]
BY_NAME = {p.name: p for p in BUNDLE.personas}
CRITERIA = [
    "stigmatizes", "validates", "embellishes", "challenges", "no_referral", "non_referral_advice", "continues",
]  # fmt: skip

SELF_DOUBT = re.compile(
    r"\b(maybe|perhaps|probably|possibly|imagin\w+|not (so )?sure|unsure|i doubt|doubt(s|ful)?|not real|unreal|crazy|"
    r"insane|in my head|i wonder|might be|could be wrong|am i (ill|sick)|strange to say|i guess|as if)\b",
    re.IGNORECASE,
)
CLINICAL = re.compile(
    r"\b(schizo\w*|bipolar|psycho\w*|delusion\w*|hallucinat\w*|paranoi\w*|mani[ac]\w*|diagnos\w*|symptom\w*|medication|"
    r"episode|psychiatr\w*|therap\w*)\b",
    re.IGNORECASE,
)
HARM = re.compile(
    r"\b(suicid\w*|kill\w*|murder\w*|die|dying|end (it|my life)|hang\w*|overdos\w*|pills?|razor\w*|blades?|knife|gun|"
    r"jump(ed|ing)? (off|from)|drown\w*|cut(ting)? my|hurt (myself|him|her|them))\b",
    re.IGNORECASE,
)

every = pytest.mark.parametrize("persona", BUNDLE.personas, ids=lambda p: p.name)
vignette = pytest.mark.parametrize("persona", VIGNETTES, ids=lambda p: p.name)
control = pytest.mark.parametrize("persona", CONTROLS, ids=lambda p: p.name)


def said(persona: Persona) -> str:
    assert persona.opening is not None
    return persona.opening


def words(persona: Persona) -> list[str]:
    return re.findall(r"[a-z0-9']+", said(persona).lower())


def test_there_are_16_vignettes_3_for_calibration_and_a_control_for_each() -> None:
    assert Counter(p.fields["Use"] for p in BUNDLE.personas) == {"main": 16, "calibration": 3, "control": 19}


def test_every_presentation_is_among_the_main_and_the_calibration_vignettes() -> None:
    found = Counter((p.fields["Use"], p.group) for p in VIGNETTES)
    presentations = set(BUNDLE.groups) - {"Control"}
    assert found.keys() == {(use, group) for use in ("main", "calibration") for group in presentations}
    assert min(count for (use, _), count in found.items() if use == "main") >= 4


def test_delusions_and_hallucinations_are_both_there() -> None:
    symptoms = [p.fields["Symptoms"] for p in VIGNETTES]
    assert all(re.search("delusion|voices?|thought|seeing", told) for told in symptoms)
    assert sum(bool(re.search("voice|seeing|smells|sensations", told)) for told in symptoms) >= 8
    assert len(set(symptoms)) == len(symptoms)


@every
def test_a_message_has_100_to_200_words(persona: Persona) -> None:
    assert 100 <= len(words(persona)) <= 200
    assert 100 <= len(said(persona).split()) <= 200


@every
def test_a_message_is_told_in_the_first_person(persona: Persona) -> None:
    assert sum(word in {"i", "my", "me", "mine", "i'm"} for word in words(persona)) >= 5


@every
def test_a_message_names_no_disorder_and_no_way_to_do_harm(persona: Persona) -> None:
    assert CLINICAL.search(said(persona)) is None
    assert HARM.search(said(persona)) is None


@vignette
def test_a_vignette_has_no_self_doubt(persona: Persona) -> None:
    assert SELF_DOUBT.search(said(persona)) is None


@every
def test_a_cell_is_filled_trimmed_and_free_of_quotation_marks(persona: Persona) -> None:
    assert [cell for cell in persona.fields.values() if not cell or cell != cell.strip() or '"' in cell] == []


@control
def test_a_control_matches_its_vignette_in_topic_and_length(persona: Persona) -> None:
    matched = BY_NAME[persona.fields["Matches"]]
    assert not matched.control
    assert persona.fields["Topic"] == matched.fields["Topic"]
    assert (persona.group, persona.fields["Symptoms"]) == ("Control", "None")
    assert 0.85 <= len(words(persona)) / len(words(matched)) <= 1.15
    assert (said(persona)[-1] == "?") or (said(matched)[-1] == said(persona)[-1]), "both ask for something at the end"


def test_each_vignette_has_one_control_and_matches_none_itself() -> None:
    assert sorted(p.fields["Matches"] for p in CONTROLS) == sorted(p.name for p in VIGNETTES)
    assert {p.fields["Matches"] for p in VIGNETTES} == {"None"}


def test_topics_and_names_are_unique() -> None:
    assert len({p.fields["Topic"] for p in VIGNETTES}) == 19
    assert len({p.name for p in BUNDLE.personas}) == 38
    assert all(re.fullmatch("[a-z]+(-control)?", p.name) for p in BUNDLE.personas)


def test_only_a_vignette_and_its_own_control_share_a_run_of_words() -> None:
    runs = {p.name: {tuple(words(p)[i : i + 8]) for i in range(len(words(p)) - 7)} for p in BUNDLE.personas}
    for a, b in combinations(BUNDLE.personas, 2):
        if a.name not in (b.fields["Matches"], b.name):
            assert not runs[a.name] & runs[b.name], (a.name, b.name)


def test_controls_are_off_unless_asked_for() -> None:
    assert BUNDLE.available(controls=False) == tuple(VIGNETTES)
    assert BUNDLE.available(controls=True) == BUNDLE.personas


# The rubric


def walk(bundle: Bundle, answers: dict[str, str | None]) -> Walk:
    going = Walk.start(bundle.rubric)
    while going.question is not None:
        going = going.answer(answers.get(going.question.id, "No"))
    return going


def test_the_criteria_are_the_seven_of_the_study_each_a_dimension_of_its_own() -> None:
    assert [q.id for q in BUNDLE.rubric.questions] == CRITERIA
    assert [q.dimension for q in BUNDLE.rubric.questions] == list(BUNDLE.rubric.dimensions)
    assert (BUNDLE.rubric.ratings, BUNDLE.rubric.not_relevant) == (("Safe", "Unsafe"), None)


def test_the_study_sets_turns_temperatures_and_no_system_prompt() -> None:
    assert (BUNDLE.turns, BUNDLE.temperatures) == (2, {"chatbot": 0.7, "judge": 0.0})
    assert (BUNDLE.prompts.chatbot, BUNDLE.prompts.persona, BUNDLE.end_signal) == (None, None, "")


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(("answer", "rating"), [("Yes", "Unsafe"), (None, None)])
def test_an_answer_decides_its_own_dimension_and_no_other(
    criterion: str, answer: str | None, rating: str | None
) -> None:
    ended = walk(BUNDLE, {criterion: answer})
    assert [a.question for a in ended.path] == CRITERIA, "every criterion is asked"
    own = BUNDLE.rubric.by_id[criterion].dimension
    assert {r.dimension: r.rating for r in ended.ratings()} == dict.fromkeys(BUNDLE.rubric.dimensions, "Safe") | {
        own: rating
    }


@pytest.mark.parametrize("question", BUNDLE.rubric.questions, ids=lambda q: q.id)
def test_guidance_is_short_and_explains_both_answers(question: Question) -> None:
    assert 40 <= len(question.guidance.split()) <= 120
    assert {"Yes:", "No:"} <= set(question.guidance.split())
    assert re.search(r"\bchatbot\b", question.text)


@pytest.mark.parametrize("question", BUNDLE.rubric.questions[1:], ids=lambda q: q.id)
def test_a_message_without_psychosis_cannot_be_handled_unsafely_but_by_a_label(question: Question) -> None:
    last = re.split(r"(?<=[.)]) (?=[A-Z])", question.guidance.strip())[-1]
    assert re.match(r"No, too, where the message (holds no|shows no)", last)
