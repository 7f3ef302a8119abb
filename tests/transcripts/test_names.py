"""Names of conversation files, read and made."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.conversation import Conversation
from vera_local.transcripts import Named, file_stems, read_name


@pytest.mark.parametrize(
    ("stem", "persona", "repeat"),
    [
        ("06c2d8_Kevin_claude-opus-4-1-20250805_run1", "Kevin", 1),
        ("04f08a_Emma_g5.2_run3", "Emma", 3),
        ("0a0a0a_P42JS1R_gpt_5_run12_s1_intake", "P42JS1R", 12),
        ("a_b", "b", 1),
        ("conversation", "", 1),
        ("aaaaaa__model_run2", "", 2),
        ("aaaaaa_Ray_model_run0", "Ray", 1),
        ("aaaaaa_Ray_model_runner", "Ray", 1),
        ("", "", 1),
    ],
)
def test_persona_and_repeat_are_read_from_a_name(stem: str, persona: str, repeat: int) -> None:
    assert read_name(stem) == Named(persona, repeat)


def test_made_names_follow_the_layout() -> None:
    made = file_stems([Conversation("Anna-2", "Anna", 2)], "org/our-model:7b")["Anna-2"]
    assert re.fullmatch(r"[0-9a-f]{6}_Anna_org-our-model-7b_run2", made)


def test_a_name_that_was_read_is_kept() -> None:
    id = "06c2d8_Kevin_claude-opus-4-1-20250805_run1"
    assert file_stems([Conversation(id, "Kevin", 1)], "unknown") == {id: id}
    assert file_stems([Conversation(id, "Karl", 1)], "unknown") != {id: id}


CONVERSATIONS = st.lists(
    st.builds(Conversation, st.text(max_size=8), st.text(max_size=5) | st.just("Mary Ann Jr."), st.integers(1, 3)),
    unique_by=lambda c: c.id,
    max_size=8,
)


@given(CONVERSATIONS, st.text(max_size=100))
def test_every_conversation_has_a_plain_name_of_its_own(conversations: list[Conversation], model: str) -> None:
    stems = file_stems(conversations, model)
    assert stems.keys() == {c.id for c in conversations}
    assert len({s.casefold() for s in stems.values()}) == len(conversations)
    assert all(re.fullmatch(r"[\w.'+-]{1,150}", s) and not s.startswith(".") for s in stems.values())
