from __future__ import annotations

import pytest

from vera_local.chatbot import Answer, Chatbot, LocalChatbot
from vera_local.conversation import Conversation, Message, Speaker
from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import ChatMessage, Draw, Finish, InvalidRequest, Reply, Request, Sampling, Usage

DRAW = Draw(temperature=0.7, top_p=0.95, max_tokens=800, repetition_penalty=1.1)
HISTORY = (
    Message(Speaker.PERSONA, "I feel low"),
    Message(Speaker.CHATBOT, " Tell me more\n"),
    Message(Speaker.PERSONA, "no"),
)
SEEN = (ChatMessage("user", "I feel low"), ChatMessage("assistant", " Tell me more\n"), ChatMessage("user", "no"))


async def test_it_sees_the_persona_as_user_and_itself_as_assistant_behind_its_system_prompt() -> None:
    engine = FakeEngine(lambda _: "yes")
    await LocalChatbot(engine, DRAW, "Help.").reply(HISTORY, 9)
    assert engine.requests == [Request((ChatMessage("system", "Help."), *SEEN), Sampling(0.7, 0.95, 800, 9, 1.1))]


def test_an_empty_system_prompt_is_not_sent() -> None:
    assert LocalChatbot(FakeEngine(lambda _: ""), DRAW, "").prompt(HISTORY) == SEEN


async def test_its_reply_comes_as_it_was_written() -> None:
    written = Reply("  <END OF CHAT>\n", Finish.LENGTH, Usage(5, 2, 4), tokens=(7, 8))
    chatbot: Chatbot = LocalChatbot(FakeEngine(lambda _: written), DRAW, "Help.")
    session = await chatbot.open(Conversation("Ann-1", "Ann", 1), 0)
    assert await session.reply(HISTORY, 1) == Answer(written.text, written.usage, cut=True)


async def test_a_failing_engine_is_told_on() -> None:
    def refuse(_: Request) -> str:
        raise InvalidRequest("no")

    with pytest.raises(InvalidRequest):
        await LocalChatbot(FakeEngine(refuse), DRAW, "Help.").reply(HISTORY, 1)
