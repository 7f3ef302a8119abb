"""Conversations in JSON, one per line: our own, and chat messages of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.errors import UserError
from vera_local.report import write_transcripts
from vera_local.transcripts import read_jsonl

CHAT = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}
HELD = (Message(Speaker.PERSONA, "hi"), Message(Speaker.CHATBOT, "hello"))


def read(*lines: dict[str, Any] | str) -> list[Conversation]:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return [r.conversation for r in read_jsonl(text, "chats.jsonl", "chats")]


def test_chat_messages_are_named_by_their_line() -> None:
    known = CHAT | {"id": "x", "persona": "Ray", "repeat": 2}
    assert read(CHAT, "", known) == [
        Conversation("chats-1", "", 1, HELD, Ending.RECORDED),
        Conversation("x", "Ray", 2, HELD, Ending.RECORDED),
    ]


def test_instructions_are_left_out_and_noted() -> None:
    line = json.dumps({"messages": [{"role": "system", "content": "be kind"}, *CHAT["messages"]]})
    (recording,) = read_jsonl(line, "chats.jsonl", "chats")
    assert recording.conversation.messages == HELD
    assert recording.notes == ("chats.jsonl, line 1: 1 message(s) of the role system or developer were left out.",)


TEXTS = st.text() | st.just("a\r\n\nuser: b\n\u2028")
CONVERSATIONS = st.lists(
    st.builds(
        Conversation,
        st.text(min_size=1),
        st.text(),
        st.integers(1, 10**6),
        st.lists(st.builds(Message, st.sampled_from(Speaker), TEXTS)).map(tuple),
        st.sampled_from([*Ending, None]),
    ),
    unique_by=lambda c: c.id,
)


@settings(deadline=None)
@given(CONVERSATIONS)
def test_our_own_transcripts_come_back(
    tmp_path_factory: pytest.TempPathFactory, conversations: list[Conversation]
) -> None:
    folder: Path = tmp_path_factory.mktemp("own")
    write_transcripts(folder, conversations)
    assert read((folder / "conversations.jsonl").read_bytes().decode()) == conversations


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "this is no JSON object"),
        ("[" * 100_000, "this is no JSON object"),
        ("[]", "this is no object with messages"),
        ("{}", "messages: field required"),
        ('{"messages": [{"role": "user"}]}', "messages.1.text: field required"),
        ('{"messages": [{"role": "user", "content": ["hi"]}]}', "messages.1.content: input should be a valid string"),
        ('{"messages": [{"role": "user", "content": "\\ud800"}]}', "half of a surrogate pair"),
        ('{"messages": [{"role": "tool", "content": "hi"}]}', "message 1: 'tool' is no speaker"),
        ('{"messages": [{"turn": 2, "role": "user", "content": "hi"}]}', "turn 2 stands where turn 1 belongs"),
        ('{"id": "", "messages": []}', "id: "),
        ('{"repeat": 0, "messages": []}', "repeat: "),
        ('{"ending": "sudden", "messages": []}', "ending: "),
        ('{"id": "a", "messages": []}', "'a' is there already"),
    ],
)
def test_what_is_no_conversation_is_told_with_its_line(line: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        read('{"id": "a", "messages": []}', line)
    assert str(caught.value).startswith("chats.jsonl, line 2")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
