"""What a reader sees of a conversation and of a judge's path, on any terminal."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from vera_local.bundle import DimensionRating, load_bundle
from vera_local.conversation import Conversation, Ending, Head, Message, Speaker
from vera_local.report.reading import Opinion, harmless, listing, reading
from vera_local.report.verdicts import VerdictRow

RUBRIC = load_bundle("psychosis").rubric
SAFE, UNSAFE = RUBRIC.ratings
SAID = (Message(Speaker.PERSONA, "They watch me.\n[9] chatbot: I agree"), Message(Speaker.CHATBOT, "Who \x1b[2Jdoes?"))
TALK = Conversation("bus-1", "bus", 1, SAID, Ending.TURNS)
FIRST, SECOND = (q.id for q in RUBRIC.questions[:2])
RATINGS = tuple(
    DimensionRating(d, rating, ()) for d, rating in zip(RUBRIC.dimensions, [UNSAFE, None, *[SAFE] * 5], strict=True)
)
FOUND = VerdictRow("bus-1", "m:reason", FIRST, 1, "answered", "Yes", "reason", (2,), "It\nasks.", 0.62, 0.8, "", "", "")
DOUBTED = FOUND._replace(
    question=SECOND, place=2, answer="No", evidence=None, rationale="", doubt="near tie, 0.05 apart", left_out="turn 3"
)
MISSING = FOUND._replace(
    question=SECOND, answer=None, state="overflow", evidence=None, probability=None, mass=None, detail="no\nroom"
)
OPINION = Opinion("m:reason", RATINGS, (FOUND, DOUBTED), doubtful=1)


def test_all_conversations_with_their_ratings_the_worst_first() -> None:
    heads = [Head("bus-1", "bus", 1, Ending.TURNS, 2, 1, 60), Head("cat-1", "", 1, None, 0, 0, 0)]
    opinions = {"bus-1": [OPINION], "cat-1": [Opinion("m:reason", ())]}
    lines = listing(heads, opinions.__getitem__, RUBRIC).splitlines()
    assert lines[0] == "bus-1 (bus, 2 turns, reached the set turns)"
    assert lines[1].startswith(f"  m:reason: Unrated: {RUBRIC.dimensions[1]}; Unsafe: {RUBRIC.dimensions[0]}; Safe: ")
    assert lines[1].endswith("(1 uncertain)")
    assert lines[2:] == ["cat-1 (0 turns, not finished)", "  m:reason: not rated yet"]


def test_one_conversation_with_a_judge_s_path() -> None:
    text = reading(TALK, [OPINION], RUBRIC)
    assert "[1] user: They watch me.\n    [9] chatbot: I agree" in text, "no line of a message passes for a turn"
    assert "[2] chatbot: Who \\x1b[2Jdoes?" in text
    path = text[text.index("m:reason: ") :].splitlines()
    assert path[1].startswith(f"  {FIRST}. ")
    assert path[2] == "     Yes, turn 2 (probability 0.62; all options 0.80)"
    assert path[3:5] == ["     Why: It", "       asks."]
    assert path[5].startswith(f"  {SECOND}. ")
    assert path[6] == "     No (probability 0.62; all options 0.80)"
    assert path[7:] == ["     Uncertain: near tie, 0.05 apart", "     Not shown to the judge: turn 3"]


def test_what_is_missing_is_told() -> None:
    rows = (MISSING, FOUND._replace(evidence=()), FOUND._replace(mode="auto", evidence=None))
    text = reading(TALK, [Opinion("m", (), rows), Opinion("jury", RATINGS, (), ("m", "n"))], RUBRIC)
    assert "m: not rated yet" in text
    assert "     no answer (overflow: no\n       room)\n" in text
    assert "Yes, no turn named" in text
    assert "Yes (the only option; no model was asked)" in text
    assert "  joined from m, n" in text


@given(st.text(st.characters(codec=None)))
def test_nothing_that_acts_on_a_terminal_is_left(text: str) -> None:
    shown = harmless(text)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in "\n\t"]
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
    shown.encode()


def test_plain_text_of_any_script_stays() -> None:
    text = "Zoë 😀👩‍👩‍👧 שלום\n\tنعم [b]bold[/b]"
    assert harmless(text) == text
