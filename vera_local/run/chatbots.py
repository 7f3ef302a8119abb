"""The chatbot of a plan, opened for as long as conversations are held. Knows no persona and no conversation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any

from vera_local.chatbot import (
    Asked,
    Chatbot,
    ChatbotFailed,
    LocalChatbot,
    Manners,
    OpenAISettings,
    RecordedChatbot,
    RecordedSettings,
    make_chatbot,
)
from vera_local.conversation import Conversation, Message, Speaker
from vera_local.engine.profile import find_profile
from vera_local.engine.seam import Engine
from vera_local.errors import UserError
from vera_local.run.host import key_of
from vera_local.run.plan import Plan
from vera_local.run.players import Player
from vera_local.run.recordings import find

GREETING = "Hello."
"""What a chatbot is told to see whether it answers at all."""

EngineOf = Callable[[Player], Engine]
"""The open engine of a player."""


@asynccontextmanager
async def opened_chatbot(plan: Plan, engine_of: EngineOf) -> AsyncIterator[Chatbot]:
    """The plan's chatbot, ready to be asked; raises UserError where it is not."""
    chatbot = _made(plan, engine_of)
    try:
        await chatbot.check()
        yield chatbot
    finally:
        await chatbot.aclose()


async def check_chatbot(plan: Plan) -> None:
    """UserError where the plan's chatbot is none of our models and cannot be reached or made."""
    settings = plan.chatbot
    if isinstance(settings, Player):
        return
    async with opened_chatbot(plan, _no_engine):
        return


async def greet_chatbot(plan: Plan) -> str:
    """What the plan's chatbot, which is none of our models, says to a greeting; raises UserError where it fails."""
    async with opened_chatbot(plan, _no_engine) as chatbot:
        try:
            session = await chatbot.open(Conversation("greeting", "", 1), plan.config.seed)
            answer = await session.reply((Message(Speaker.PERSONA, GREETING),), plan.config.seed)
            await session.aclose()
        except ChatbotFailed as error:
            raise UserError(f"the chatbot did not answer a greeting: {error}") from None
    return answer.text


def chatbot_identity(plan: Plan) -> dict[str, Any]:
    """All that decides what a chatbot that is none of our models is asked; how it is treated does not."""
    settings = plan.chatbot
    assert not isinstance(settings, Player)
    told = settings.model_dump(mode="json", exclude={*Manners.model_fields, "system_prompt", "hosts"})
    files = {"files": find(settings.path).files} if isinstance(settings, RecordedSettings) else {}
    prompt = {"system_prompt": plan.system_prompt}
    return {"model": settings.title, "embedded": False, "settings": told, **prompt, **files}


def place_of(plan: Plan) -> Hashable:
    """What the plan's chatbot goes by: the same for runs that test the same one and share what it can hold at once."""
    return key_of(plan.chatbot) if isinstance(plan.chatbot, Player) else plan.chatbot.model_dump_json()


def _made(plan: Plan, engine_of: EngineOf) -> Chatbot:
    settings = plan.chatbot
    match settings:
        case Player():
            return LocalChatbot(engine_of(settings), settings.draw, plan.system_prompt, settings.when_full)
        case RecordedSettings():
            return RecordedChatbot(find(settings.path).conversations)
    return make_chatbot(settings, plan.system_prompt, _aliases(settings))


def _aliases(settings: Asked) -> tuple[str, ...]:
    """The name that the hub has for a model of ours: a server may offer it under that one."""
    if not isinstance(settings, OpenAISettings):
        return ()
    try:
        hub = find_profile(settings.model).source.hub
    except UserError:
        return ()
    return () if hub is None else (hub,)


def _no_engine(player: Player) -> Engine:
    raise AssertionError("a chatbot that is no model of ours needs no engine")
