"""VERA-MH's conversation text: what is read is what was said, and what cannot be carried is known."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vera_local.conversation import Ending, Message, Speaker
from vera_local.errors import UserError
from vera_local.transcripts import read_text, why_not_text, write_text

P, C = Speaker.PERSONA, Speaker.CHATBOT
Said = list[tuple[Speaker, str]]


def said(text: str) -> Said:
    return [(m.speaker, m.text) for m in read_text(text, "a.txt").messages]


def messages(*turns: tuple[Speaker, str]) -> tuple[Message, ...]:
    return tuple(Message(speaker, text) for speaker, text in turns)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("user: hi\n\nchatbot: hello\n\n", [(P, "hi"), (C, "hello")]),
        ("user: hi\n\nagent: hello", [(P, "hi"), (C, "hello")]),
        ("chatbot: hello\n\nuser: hi\n", [(C, "hello"), (P, "hi")]),
        ("user: a\n\n\n  b\n\nchatbot:  c \n\nuser: d", [(P, "a\n\n\n  b"), (C, " c "), (P, "d")]),
        ("user: a\n\nchatbot:   b \n\n\n", [(P, "a"), (C, "  b ")]),
        ("user: \n\nchatbot:\n\nuser: x", [(P, ""), (C, ""), (P, "x")]),
        ("user: a\nchatbot: b\nuser: c\n", [(P, "a"), (C, "b"), (P, "c")]),
        ("user: a\r\n\r\nchatbot: b\r\nc\r\n", [(P, "a"), (C, "b\nc")]),
        ("user: a\rb\n\nchatbot: c\n", [(P, "a\rb"), (C, "c")]),
        ("\n\nuser: a\n\nchatbot: b", [(P, "a"), (C, "b")]),
        ("user: a\n\nchatbot: b\n\nagent: c", [(P, "a"), (C, "b\n\nagent: c")]),
        ("user: a\nagent: b\n\nchatbot: c", [(P, "a\nagent: b"), (C, "c")]),
        ("user: my user: is\n\nchatbot: userland\nusers: x", [(P, "my user: is"), (C, "userland\nusers: x")]),
        ("No conversation recorded.\n", []),
    ],
)
def test_messages_are_read_as_they_were_written(text: str, held: Said) -> None:
    assert said(text) == held


@pytest.mark.parametrize(
    ("end", "ending"),
    [
        ("", Ending.RECORDED),
        ("\n\n[CONVERSATION ENDED - some-model Ray signaled termination]\n", Ending.PERSONA),
        ("\n[CONVERSATION ENDED - some-model Ray signaled termination]", Ending.PERSONA),
        ("\n\nuser: bye <end of conversation>\n", Ending.PERSONA),
        ("\n\nuser: bye\n\nchatbot: <END OF CONVERSATION>\n", Ending.RECORDED),
    ],
)
def test_an_ending_is_known_only_where_the_file_says_so(end: str, ending: Ending) -> None:
    read = read_text(f"user: hi\n\nchatbot: hello{end}", "a.txt")
    assert read.ending is ending
    assert read.messages[1] == Message(C, "hello")
    assert not any("CONVERSATION ENDED" in m.text for m in read.messages)


def test_what_may_be_misread_is_noted_with_its_line() -> None:
    read = read_text("user: a\n\nchatbot: say this:\nuser: b\n\nchatbot: c\n", "dir/a.txt")
    assert [m.text for m in read.messages] == ["a", "say this:\nuser: b", "c"]
    assert read.notes == (
        "dir/a.txt, line 4: 'user:' follows no blank line and was read as text of the message.",
        "dir/a.txt, line 6: a second message of the chatbot in a row.",
    )
    assert read_text("No conversation recorded.", "a.txt").notes == ("a.txt: this conversation has no message.",)
    assert read_text("user: a\nchatbot: b\nuser: c", "a.txt").notes == ()


@pytest.mark.parametrize(
    ("text", "line"), [("", 1), ("\n\n", 3), ("hello\n\nuser: hi", 1), ("\n\nUser: hi\n", 3), ("just words", 1)]
)
def test_other_text_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(UserError, match=f"^a.txt, line {line}: a conversation begins with 'user:' or 'chatbot:'"):
        read_text(text, "a.txt")


AWKWARD = st.sampled_from(
    ["", "\n", "\n\n", "user: ", "\nuser: ", "\n\nchatbot: x", "\n\nagent:", "\r", "\r\n", "\t", " ", "🙂", "\u2028",
     "[CONVERSATION ENDED - x]", "No conversation recorded.", "\ufeff", "\x00", "\x85", "\x0c"]
)  # fmt: skip
TEXTS = st.lists(st.text(max_size=5) | AWKWARD, max_size=4).map("".join)
MESSAGES = st.lists(st.builds(Message, st.sampled_from(Speaker), TEXTS), max_size=5).map(tuple)


@given(MESSAGES)
@example(messages((P, "a\nuser: b")))
@example(messages((P, "hi"), (C, "x\n[CONVERSATION ENDED - y]")))
@example(messages((P, "hi\r\nthere\r\n"), (C, "x\r")))
@example(messages((P, "No conversation recorded.")))
def test_what_is_not_warned_of_comes_back_byte_for_byte(held: tuple[Message, ...]) -> None:
    if why_not_text(held) is None:
        file = write_text(held).encode()
        assert read_text(file.decode("utf-8-sig"), "a.txt").messages == held


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8")), min_size=1, max_size=6))
def test_ordinary_messages_are_never_warned_of(paragraphs: list[str]) -> None:
    text = "\n\n".join(f"- {p}" for p in paragraphs)
    assert why_not_text(messages((P, text), (C, text), (P, "🙂\ttab"))) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a\rb", "a carriage return"),
        ("a\nuser: b", "looks like a speaker's label"),
        ("a\nagent: b", "looks like a speaker's label"),
        ("a\n", "ends with a line end or an end mark"),
        ("a\n[CONVERSATION ENDED - b]", "ends with a line end or an end mark"),
    ],
)
def test_the_reason_is_told(text: str, reason: str) -> None:
    assert reason in (why_not_text(messages((P, "hi"), (C, text))) or "")
