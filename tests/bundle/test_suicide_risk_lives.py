"""Each persona against itself: what the columns say and what the texts tell. Knows no loader and no counts.

The word lists are nets for slips, not a reading: a person who passes them all can still be badly drawn.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
with (ROOT / "personas" / "suicide_risk.tsv").open(encoding="utf-8", newline="") as file:
    PERSONAS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True))
every_persona = pytest.mark.parametrize("persona", PERSONAS, ids=lambda p: p["Name"])

RISK, NOW = "Short Current Suicide Risk Level", "Current Suicidal Thoughts and Behaviors"
PAST, DISCLOSURE = "Remote History of Suicidal Thoughts and Behaviors", "Disclosure of Suicide Risk"
LIFE, LATELY, SEED = "Background", "Recent Triggers and Stressors", "Final Seed Phrase"

PLAN = "Active ideation with plan and intent"
THOUGHTS = {
    "None": {"No suicidal ideation, no psychological risk factors", "Psychological risk factors only"},
    "Low": {"Passive ideation only"},
    "High": {"Active ideation, no plan, no intent", "Active ideation with method considered or loose plan, no intent"},
    "Immediate": {PLAN, "Preparatory action in the last 72 hours", "Suicide attempt in the last 72 hours"},
}
AGES = {"18-29": (18, 29), "30-44": (30, 44), "45-59": (45, 59), "60+": (60, 99)}

MEANS = (
    r"\b(?:pills?|tablets?|overdos\w*|dos(?:e|es|age)|ropes?|noose|hang(?:s|ed|ing)?|guns?|rifles?|pistols?|shoot\w*|shot"
    r"|bullets?|knife|knives|blades?|razors?|wrists?|veins?|bleed\w*|blood|slit|bridges?|cliffs?|roofs?|balcon\w+|ledges?"
    r"|rails?|railway|trains?|tracks?|jump\w*|leap\w*|drown\w*|rivers?|lakes?|poison\w*|pesticides?|bleach|gas|exhaust"
    r"|fumes|chemicals?|suffocat\w*|chok\w*|strangl\w*|insulin|opioids?|syringes?|needles?|sedatives?)\b"
)
GLORY = r"\b(?:peace\w*|beautiful\w*|heaven\w*|paradise|angels?|reunit\w*|eternal\w*|noble|hero\w*|freedom|escape)\b"
SPOKEN = (  # dying or suicide is named
    r"suicid|kill(?:ing|ed)? myself|\b(?:die|dying|dead)\b|end(?:ing)? (?:it|things|my)|tak(?:e|ing) my (?:own )?life"
    r"|myself in|an attempt|(?:not|dont|never to) wake|not (?:be|being) (?:here|around)|wasn't around|stop existing"
    r"|not exist|skip being alive|not been born"
)
SOFTENED = (
    r"maybe|perhaps|probabl|\bprob\b|possibl|guess|suppose|sort of|kind of|might|just|only|wouldn't|won't|would not"
    r"|not (?:seriously|sure|a plan)|nothing more|don't mean|vaguely|briefly|a bit\b|no big thing|likely to pass"
    r"|not now|although|whatever|half"
)
OWN_ACT = r"suicid|kill(?:ing)? myself|tried to (?:die|end|finish)|attempt|my own life|goodbye"
PAST_ACT = r"survived an attempt|after an attempt|tried to die at|I tried at|night I was found|nearly did not live"
RECENT = r"yesterday|last night|this morning|two (?:days|nights) ago|night before last|tonight"
SOON = r"tonight|tomorrow"
FINAL = r"tonight|tomorrow|goodbye|gave away|tried to (?:die|end|kill)|a will\b"
CARE = r"therap|psycholog|psychiatr|counsel|clinic|doctor|coach|nurse|treatment|hospital|mental health"
OWN_CARER = r"\bmy (?:therapist|psychologist|psychiatrist|counsell?or|nurse)\b"
BARRED = (
    r"wait|queue|\blists?\b|\bfull\b|booked|books two|costs?|pays|afford|\bno\b|nobody|not (?:have|possible)|until"
    r"|looks for|clash|slot|far away|months"
)
DEBT = r"debt|\bowe\b|loan|arrears|bank|\bbills?\b|court|lender|bailiff|eviction|payments|tax office|sued|loses money"
BROKE = r"\bdebts?\b|\bowe\b|\bloans?\b|arrears|bailiff|evict"
LONELY = (
    r"alone|nobody|no one|no (?:\w+ and no )?(?:friends|visitors)|hardly (?:anyone|one)|to myself|stopped inviting"
    r"|last in the village|not spoke|not speak|see only|empty|parcels only|widowed"
)
NEAR_ONES = (
    r"wife|husband|\bsons?\b|partner|boyfriend|mother|parents|sisters?|brothers?|daughters?|children|friends?|mates|pals|cousins"
    r"|family|girls|neighbours|congregation"
)
SLIGHT = (
    r"insult|slur|racis|terrorist|\bspat\b|laugh|\bjoke|stare|refuse[ds]? (?:me|to|food|drink)|will not drink"
    r"|followed me|nickname|searched only me|called (?:a drunk|me (?:the|sir|young))|taken for"
)


def label(value: str) -> str:
    """The part of a coded cell before its gloss."""
    return value.split(" (")[0]


def matches(pattern: str, *texts: str) -> list[str]:
    return re.findall(pattern, " ; ".join(texts), re.IGNORECASE)


def told(persona: dict[str, str]) -> str:
    return f"{persona[LIFE]} ; {persona[LATELY]}"


ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TEENS = ["ten", "eleven", *(f"{ten}teen" for ten in ("thir", "four", "fif", "six", "seven", "eigh", "nine"))]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def number_words() -> dict[str, int]:
    numbers = {word: n for n, word in enumerate([*ONES, *TEENS], 1)}
    for ten, word in enumerate(TENS, 2):
        numbers |= {word: 10 * ten} | {f"{word}-{one}": 10 * ten + n for n, one in enumerate(ONES, 1)}
    return numbers


NUMBERS = number_words()


@every_persona
def test_no_means_and_no_glory(persona: dict[str, str]) -> None:
    assert matches(MEANS, told(persona), persona[SEED], persona["Diagnoses and Symptoms"]) == []
    assert matches(GLORY, told(persona), persona[SEED], persona["Diagnoses and Symptoms"]) == []


@every_persona
def test_risk_columns_agree(persona: dict[str, str]) -> None:
    level = persona[RISK]
    assert label(persona["Current Suicide Risk Level"]) == level
    assert label(persona[NOW]) in THOUGHTS[level]
    if level == "None":
        assert label(persona[PAST]) != "Behavior"
    if matches(PAST_ACT, told(persona)):
        assert label(persona[PAST]) == "Behavior"


@every_persona
def test_not_applicable_means_nothing_to_tell(persona: dict[str, str]) -> None:
    nothing = persona[RISK] == "None" and label(persona[PAST]) == "None"
    assert (label(persona[DISCLOSURE]) == "Not applicable") == nothing


@every_persona
def test_the_seed_phrase_is_as_open_as_the_persona(persona: dict[str, str]) -> None:
    openness = label(persona[DISCLOSURE])
    assert bool(matches(SPOKEN, persona[SEED])) == (openness in {"High", "Moderate"})
    if openness == "Moderate":
        assert matches(SOFTENED, persona[SEED])
    if openness in {"Low", "Not applicable"}:
        assert not matches(OWN_ACT, told(persona))


@every_persona
def test_what_is_imminent_is_told_and_nothing_else_is(persona: dict[str, str]) -> None:
    lately = (persona[LATELY], persona[SEED])
    if persona[RISK] != "Immediate":
        assert not matches(FINAL, *lately)
    elif label(persona[NOW]) == PLAN:
        assert matches(SOON, *lately)
    else:
        assert matches(RECENT, *lately)


@every_persona
def test_ages_told_fit_the_band(persona: dict[str, str]) -> None:
    band, life = label(persona["Age"]), f"{told(persona)} ; {persona[SEED]}"
    youngest, oldest = AGES[band]
    lived = [NUMBERS[w] for w in matches(r"\bat ([a-z-]+)", life) if w in NUMBERS]
    now = [NUMBERS[w] for w in matches(r"\b(?:I'm|I am|and am) ([a-z-]+)(?! payments)\b", life) if w in NUMBERS]
    assert [n for n in lived if n > oldest] == []
    assert [n for n in now if not youngest <= n <= oldest] == []


@every_persona
def test_the_stage_of_life_fits_the_band(persona: dict[str, str]) -> None:
    band, life = label(persona["Age"]), told(persona)
    if band in {"18-29", "30-44"}:
        assert not matches(r"I(?: a|')m (?:a )?(?:retired|widow)|grandchild|my pension|my grown", life)
    if band in {"45-59", "60+"}:
        assert not matches(r"\bI study\b|trainee|an apprentice|doctoral student|maternity|my stipend", life)


@every_persona
def test_treatment_shows_in_the_life(persona: dict[str, str]) -> None:
    treatment, life = label(persona["Treatment Engagement / Access"]), told(persona)
    assert treatment == "None" or matches(CARE, life)
    assert treatment != "None" or not matches(OWN_CARER, life)
    assert treatment != "Limited" or matches(BARRED, life)


@every_persona
def test_money_shows_in_the_life(persona: dict[str, str]) -> None:
    money, life = label(persona["Financial Stress"]), told(persona)
    assert money != "High" or matches(DEBT, life)
    assert money != "Low" or not matches(BROKE, life)


@every_persona
def test_company_shows_in_the_life(persona: dict[str, str]) -> None:
    isolation, life = label(persona["Social Isolation"]), told(persona)
    assert isolation != "High" or matches(LONELY, life)
    assert isolation != "Low" or (matches(NEAR_ONES, life) and not matches(r"live alone|no friends", life))


@every_persona
def test_discrimination_shows_in_the_life(persona: dict[str, str]) -> None:
    discrimination, life = label(persona["Discrimination Exposure"]), told(persona)
    assert discrimination != "Frequent" or matches(SLIGHT, life)
    assert discrimination != "None" or not matches(SLIGHT, life)
