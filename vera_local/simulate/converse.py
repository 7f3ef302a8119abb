"""One conversation between a persona and a chatbot. Knows no other conversation, no store and no rubric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from vera_local.bundle import Persona
from vera_local.chatbot import STUB, Chatbot, ChatbotFailed, ChatbotOverflow, Session
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.seam import NO_USAGE, ContextOverflow, EngineDied, EngineError
from vera_local.seed import derive
from vera_local.simulate.noted import NotedSimulator
from vera_local.simulate.simulator import Simulator
from vera_local.simulate.speech import MAX_WORDS, Reject, Rejected, Said, SimulatorFailed, Voice
from vera_local.simulate.words import size, words

Record = Callable[[int, Said], None]
"""Called with the turn (1-based) and what was said, once it exists."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A conversation that ended, and why in words where it was not as planned."""

    conversation: Conversation
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all conversations of a run share. `turns` counts messages of both sides; the last is the chatbot's, so it
    is even where the persona speaks `first` and odd where the chatbot does.

    `simulator` None: the scripted openings are all that the personas say, and `turns` is 2. `earliest_end`: the first
    turn at which a persona may leave. `max_words`: of a persona's message. `max_total_words`: the conversation ends
    with the chatbot's message that reaches so many words of both sides together; None: no limit.
    """

    simulator: Simulator | NotedSimulator | None
    chatbot: Chatbot
    turns: int
    seed: int
    first: Speaker = Speaker.PERSONA
    earliest_end: int = 1
    max_words: int = MAX_WORDS
    max_total_words: int | None = None

    def speaker(self, turn: int) -> Speaker:
        """Whose turn it is (1-based)."""
        second = Speaker.CHATBOT if self.first is Speaker.PERSONA else Speaker.PERSONA
        return self.first if turn % 2 else second

    def long_enough(self, conversation: Conversation) -> bool:
        """Whether the words of both sides reach their limit, at the end of a chatbot's message."""
        if self.max_total_words is None or not conversation.messages:
            return False
        by_chatbot = conversation.messages[-1].speaker is Speaker.CHATBOT
        return by_chatbot and sum(size(words(m.text)) for m in conversation.messages) >= self.max_total_words


def _unheard(turn: int, rejected: Rejected) -> None:
    """Nobody keeps rejected tries."""


async def converse(
    setting: Setting, persona: Persona, so_far: Conversation, record: Record, reject: Reject = _unheard
) -> Ended:
    """Go on from `so_far` until the conversation ends.

    A failure that concerns this conversation alone becomes its ending. EngineDied is raised: it concerns all.
    """
    conversation, session = so_far, None
    try:
        session = await setting.chatbot.open(so_far, derive(setting.seed, so_far.id, "open"))
        while len(conversation.messages) < setting.turns:
            if setting.long_enough(conversation):
                return Ended(replace(conversation, ending=Ending.WORDS))
            said = await _next(setting, session, persona, conversation, reject)
            if said.message.text or said.message.speaker is Speaker.CHATBOT:
                conversation = replace(conversation, messages=(*conversation.messages, said.message))
                record(len(conversation.messages), said)
            if said.leaves:
                return Ended(replace(conversation, ending=Ending.PERSONA))
    except EngineDied:
        raise
    except (ChatbotFailed, SimulatorFailed, EngineError) as error:
        return Ended(replace(conversation, ending=_ending(error)), str(error))
    finally:
        if session is not None:
            await session.aclose()
    return Ended(replace(conversation, ending=Ending.TURNS))


def _ending(error: Exception) -> Ending:
    match error:
        case ChatbotOverflow() | ContextOverflow():
            return Ending.OVERFLOW
        case ChatbotFailed():
            return Ending.CHATBOT
        case SimulatorFailed():
            return Ending.SIMULATOR
    return Ending.ERROR


async def _next(
    setting: Setting, session: Session, persona: Persona, conversation: Conversation, reject: Reject
) -> Said:
    turn = len(conversation.messages) + 1
    if setting.speaker(turn) is Speaker.CHATBOT:
        return await _answered(setting, session, conversation)
    if turn == 1 and persona.opening is not None:
        return Said(Message(Speaker.PERSONA, persona.opening), NO_USAGE, cut=False)
    assert setting.simulator is not None, "a persona that says more than its opening is played by a model"
    voice = Voice(setting.simulator, setting.seed, setting.earliest_end, setting.max_words)
    return await voice.speak(persona, conversation, reject)


async def _answered(setting: Setting, session: Session, conversation: Conversation) -> Said:
    seed = derive(setting.seed, conversation.id, len(conversation.messages) + 1)
    seen = conversation.messages if setting.first is Speaker.PERSONA else (STUB, *conversation.messages)
    answer = await session.reply(seen, seed)
    return Said(Message(Speaker.CHATBOT, answer.text), answer.usage, answer.cut, left_out=answer.left_out)
