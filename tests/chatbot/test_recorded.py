from __future__ import annotations

import pytest

from vera_local.chatbot import Answer, Chatbot, ChatbotFailed, RecordedChatbot
from vera_local.conversation import Conversation, Message, Speaker


def recorded(id: str, persona: str, repeat: int, *replies: str) -> Conversation:
    said = [m for text in replies for m in (Message(Speaker.PERSONA, "?"), Message(Speaker.CHATBOT, text))]
    return Conversation(id, persona, repeat, tuple(said))


CHATBOT: Chatbot = RecordedChatbot(
    [recorded("b", "Ann", 2, "second"), recorded("a", "Ann", 1, "one", "two"), recorded("c", "Bo", 1)]
)
ASKED = (Message(Speaker.PERSONA, "hi"),)
LATER = (*ASKED, Message(Speaker.CHATBOT, "said otherwise"), Message(Speaker.PERSONA, "and?"))


async def test_the_nth_reply_is_the_nth_recorded_one() -> None:
    session = await CHATBOT.open(Conversation("Ann-1", "Ann", 1), 0)
    assert [await session.reply(history, 0) for history in (ASKED, LATER, ASKED)] == [
        Answer("one"),
        Answer("two"),
        Answer("one"),
    ]


async def test_repeats_are_told_apart() -> None:
    session = await CHATBOT.open(Conversation("Ann-2", "Ann", 2), 0)
    assert await session.reply(ASKED, 0) == Answer("second")


@pytest.mark.parametrize(("persona", "repeat", "told"), [("Ann", 3, "2 conversations with Ann"), ("Cy", 1, "0 conv")])
async def test_a_conversation_that_is_not_recorded_fails(persona: str, repeat: int, told: str) -> None:
    with pytest.raises(ChatbotFailed, match=told):
        await CHATBOT.open(Conversation("x", persona, repeat), 0)


async def test_a_reply_that_is_not_recorded_fails() -> None:
    session = await CHATBOT.open(Conversation("Bo-1", "Bo", 1), 0)
    with pytest.raises(ChatbotFailed, match="the recording c has 0 replies and no further one"):
        await session.reply(ASKED, 0)
