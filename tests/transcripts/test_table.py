"""Conversations as CSV."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.errors import UserError
from vera_local.transcripts import read_table


def read(text: str) -> list[Conversation]:
    return [r.conversation for r in read_table(text, "chats.csv")]


def test_rows_become_conversations_in_turn_order() -> None:
    text = (
        "Conversation,persona,turn,role,text,rated\n"
        "b,Ray,2,assistant,hello,1\n"
        '"a",,1,user,"one\n\nuser: two, ""three""",1\n'
        "b,Ray,1,user,hi,1\n"
    )
    talk = (Message(Speaker.PERSONA, "hi"), Message(Speaker.CHATBOT, "hello"))
    assert read(text) == [
        Conversation("b", "Ray", 1, talk, Ending.RECORDED),
        Conversation("a", "", 1, (Message(Speaker.PERSONA, 'one\n\nuser: two, "three"'),), Ending.RECORDED),
    ]


@given(st.lists(st.text() | st.just("a\r\n\nb\r,\"'\t"), min_size=1))
def test_any_text_comes_back(texts: list[str]) -> None:
    file = io.StringIO(newline="")
    rows = [("a", turn, "user", text) for turn, text in enumerate(texts, 1)]
    csv.writer(file).writerows([("conversation", "turn", "speaker", "text"), *rows])
    assert [m.text for m in read(file.getvalue())[0].messages] == texts


HEADER = "conversation,turn,speaker,text\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("conversation,turn,text\n", "line 1: the table needs exactly one column speaker or role"),
        ("conversation,turn,role,speaker,text\n", "line 1: the table needs exactly one column speaker or role"),
        ("turn,role,text\n", "line 1: the table needs exactly one column conversation"),
        (HEADER + "a,1,user\n", "line 2: 3 cells where the header has 4"),
        (HEADER + 'a,1,user,"x\ny"\na,two,user,z\n', "line 4: turn 'two' is no whole number"),
        (HEADER + "a,1,user,x\na,1,user,y\n", "line 3: turn 1 of 'a' stands where turn 2 belongs"),
        (HEADER + "a,0,user,x\n", "line 2: turn 0 of 'a' stands where turn 1 belongs"),
        (HEADER + "a,1,nurse,x\n", "line 2: 'nurse' is no speaker"),
        (HEADER + ",1,user,x\n", "line 2: the conversation has no name"),
        (HEADER + 'a,1,user,"x', "line 2: this is no CSV"),
        ("persona," + HEADER + "P,a,1,user,x\nQ,a,2,user,y\n", "line 3: 'a' has another persona"),
    ],
)
def test_what_cannot_be_understood_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        read(text)
    assert str(caught.value).startswith(f"chats.csv, {told}")
    assert "\n" not in str(caught.value)
