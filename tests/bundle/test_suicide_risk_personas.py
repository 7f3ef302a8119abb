"""The personas as a table: columns, published counts, labels, uniqueness. Knows no loader and no life's meaning."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
with (ROOT / "personas" / "suicide_risk.tsv").open(encoding="utf-8", newline="") as file:
    PERSONAS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True))
every_persona = pytest.mark.parametrize("persona", PERSONAS, ids=lambda p: p["Name"])
DOCUMENT = yaml.safe_load((ROOT / "rubric" / "suicide_risk" / "rubric.yaml").read_text(encoding="utf-8"))

NAME, AGE, GENDER = "Name", "Age", "Gender"
LONG_RISK, RISK = "Current Suicide Risk Level", "Short Current Suicide Risk Level"
NOW = "Current Suicidal Thoughts and Behaviors"
PAST = "Remote History of Suicidal Thoughts and Behaviors"
DISCLOSURE, STYLE = "Disclosure of Suicide Risk", "Primary Communication Style"
REACTION = "Reaction to Chatbot Responses"
SYMPTOMS, TREATMENT, STIGMA = "Diagnoses and Symptoms", "Treatment Engagement / Access", "Mental Health Stigma"
MONEY, ISOLATION, DISCRIMINATION = "Financial Stress", "Social Isolation", "Discrimination Exposure"
LIFE, LATELY, SEED = "Background", "Recent Triggers and Stressors", "Final Seed Phrase"
LEVELS = ["None", "Low", "High", "Immediate"]

# The published counts of 100: those of EXACT are met, those of NEAR within 3.
EXACT = {
    RISK: {"None": 10, "Low": 30, "High": 30, "Immediate": 30},
    AGE: {"18-29": 40, "30-44": 29, "45-59": 21, "60+": 10},
    GENDER: {"Woman": 44, "Man": 43, "Transgender man": 6, "Transgender woman": 4, "Nonbinary": 3},
}
NEAR = {
    NOW: {
        "No suicidal ideation, no psychological risk factors": 5,
        "Psychological risk factors only": 5,
        "Passive ideation only": 30,
        "Active ideation, no plan, no intent": 14,
        "Active ideation with method considered or loose plan, no intent": 16,
        "Active ideation with plan and intent": 11,
        "Preparatory action in the last 72 hours": 10,
        "Suicide attempt in the last 72 hours": 9,
    },
    PAST: {"None": 30, "Ideation": 44, "Behavior": 26},
    DISCLOSURE: {"High": 28, "Moderate": 38, "Low": 26, "Not applicable": 8},
    STYLE: {"Structured": 27, "Disorganized": 37, "Minimal": 22, "Qualifying": 14},
    REACTION: {"Engaged": 26, "Resistant": 43, "Disengaged": 31},
    TREATMENT: {"None": 29, "Limited": 27, "Active": 25, "Intermittent": 19},
    STIGMA: {"Low": 40, "Moderate": 34, "High": 26},
    MONEY: {"Low": 30, "Moderate": 50, "High": 20},
    ISOLATION: {"Low": 40, "Moderate": 31, "High": 29},
    DISCRIMINATION: {"None": 51, "Occasional": 30, "Frequent": 19},
}
DISCLOSURE_BY_RISK = {
    "None": {"Not applicable": 8, "Moderate": 2},
    "Low": {"High": 7, "Low": 12, "Moderate": 11},
    "High": {"High": 12, "Low": 5, "Moderate": 13},
    "Immediate": {"High": 9, "Low": 9, "Moderate": 12},
}
DIAGNOSES = {
    "Adjustment / stress-related symptoms",
    "Anxiety",
    "Bipolar mood symptoms",
    "Eating and body-image symptoms",
    "Neurocognitive / executive symptoms",
    "Obsessive / intrusive thought patterns",
    "Psychosis",
    "Substance use-related symptoms",
    "Trauma-related symptoms",
    "Unipolar depression",
}


def label(value: str) -> str:
    """The part of a coded cell before its gloss."""
    return value.split(" (")[0]


def level_of(persona: dict[str, str]) -> str:
    return persona[RISK]


def counts(column: str) -> dict[str, int]:
    return dict(Counter(label(p[column]) for p in PERSONAS))


def glosses(persona: dict[str, str]) -> list[str]:
    return re.findall(r"\(([^()]+)\)(?: \| |$)", persona[SYMPTOMS])


def test_column_names_are_those_of_the_rubric() -> None:
    assert DOCUMENT["personas"]["columns"] == list(PERSONAS[0])
    assert len(PERSONAS[0]) == 19
    assert set(PERSONAS[0]) == {*EXACT, *NEAR, NAME, LONG_RISK, SYMPTOMS, LIFE, LATELY, SEED}


@pytest.mark.parametrize("column", EXACT)
def test_counts_are_the_published_ones(column: str) -> None:
    assert counts(column) == EXACT[column]


@pytest.mark.parametrize("column", NEAR)
def test_counts_are_near_the_published_ones(column: str) -> None:
    found = counts(column)
    assert found.keys() == NEAR[column].keys()
    assert {name: n for name, n in found.items() if abs(n - NEAR[column][name]) > 3} == {}


@pytest.mark.parametrize("level", LEVELS)
def test_disclosure_within_a_level_is_near_the_published_one(level: str) -> None:
    found = Counter(label(p[DISCLOSURE]) for p in PERSONAS if level_of(p) == level)
    assert found.keys() == DISCLOSURE_BY_RISK[level].keys()
    assert [name for name, n in found.items() if abs(n - DISCLOSURE_BY_RISK[level][name]) > 3] == []


def test_levels_come_in_turn_while_they_last() -> None:
    assert DOCUMENT["personas"]["groups"] == LEVELS
    assert [level_of(p) for p in PERSONAS] == LEVELS * 10 + LEVELS[1:] * 20


@pytest.mark.parametrize("gender", ["Transgender man", "Transgender woman", "Nonbinary"])
def test_no_small_group_stands_for_one_level(gender: str) -> None:
    assert len({level_of(p) for p in PERSONAS if label(p[GENDER]) == gender}) >= 3


@pytest.mark.parametrize("column", [*EXACT, *NEAR, LONG_RISK])
def test_a_label_has_one_wording(column: str) -> None:
    wordings = defaultdict(set)
    for p in PERSONAS:
        wordings[label(p[column])].add(p[column])
    assert {name: cells for name, cells in wordings.items() if len(cells) > 1} == {}


@pytest.mark.parametrize("column", NEAR)
def test_a_coded_cell_explains_its_label(column: str) -> None:
    assert [p[NAME] for p in PERSONAS if not re.fullmatch(r"[^()]+ \([^()]+\)", p[column])] == []


@pytest.mark.parametrize("column", [NAME, LIFE, LATELY, SEED])
def test_no_two_personas_share(column: str) -> None:
    assert len({p[column] for p in PERSONAS}) == len(PERSONAS)


def test_no_two_personas_share_a_run_of_five_words() -> None:
    runs = defaultdict(set)
    for p in PERSONAS:
        for text in (p[LIFE], p[LATELY], p[SEED], *glosses(p)):
            words = re.findall(r"[\w']+", text.lower())
            for start in range(len(words) - 4):
                runs[" ".join(words[start : start + 5])].add(p[NAME])
    assert {run: names for run, names in runs.items() if len(names) > 1} == {}


def test_no_two_personas_tell_the_same_story() -> None:
    words = {p[NAME]: set(re.findall(r"[a-z']{4,}", f"{p[LIFE]} {p[LATELY]} {p[SEED]}".lower())) for p in PERSONAS}
    alike = [(a, b) for a, b in combinations(words, 2) if len(words[a] & words[b]) > 0.2 * len(words[a] | words[b])]
    assert alike == []


def test_personas_differ_from_the_published_ones() -> None:
    published = ROOT / "../shared/data/vera-mh-1.1/personas.tsv"
    if not published.exists():
        pytest.skip("the published personas are not on this machine")
    with published.open(encoding="utf-8", newline="") as source:
        taken = {row[NAME] for row in csv.DictReader(source, delimiter="\t")}
    earlier = {"Alix", "Brian", "Kevin", "Kim", "Lena", "Maya", "Noah", "Omar", "Ray", "Sky"}
    assert {p[NAME] for p in PERSONAS} & (taken | earlier) == set()


@every_persona
def test_cells_are_plain_text(persona: dict[str, str]) -> None:
    assert [column for column, cell in persona.items() if not cell or cell != cell.strip() or '"' in cell] == []
    assert re.fullmatch("[A-Za-z]+", persona[NAME])
    assert not re.search(rf"\b{persona[NAME]}\b", persona[LIFE] + persona[LATELY] + persona[SEED])


@every_persona
def test_texts_are_short_clauses_in_the_first_person(persona: dict[str, str]) -> None:
    assert 15 <= len(persona[LIFE].split()) <= 50
    assert 12 <= len(persona[LATELY].split()) <= 40
    assert 8 <= len(persona[SEED].split()) <= 35
    for text in (persona[LIFE], persona[LATELY]):
        assert 3 <= len(text.split("; ")) <= 7
        assert re.search(r"\b(?:I|my)\b", text, re.IGNORECASE)
        assert not re.search(r"[.;]$|\. ", text)


@every_persona
def test_symptoms_are_known_labels_with_own_glosses(persona: dict[str, str]) -> None:
    parts = persona[SYMPTOMS].split(" | ")
    assert len(glosses(persona)) == len(parts) <= 2
    assert {label(part) for part in parts} <= DIAGNOSES
