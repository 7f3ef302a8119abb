"""One conversation between a persona and a chatbot. Knows no other conversation, no store and no rubric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from vera_local.bundle import Persona
from vera_local.chatbot import Chatbot, ChatbotFailed, ChatbotOverflow, Session
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.seam import NO_USAGE, ContextOverflow, EngineDied, EngineError, Usage
from vera_local.seed import derive
from vera_local.simulate.noted import NotedSimulator
from vera_local.simulate.simulator import Simulator

TRIES = 4
"""How often a persona is asked for one message, each time with another seed, before its simulator counts as failed."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message, what it cost, whether it was cut at its token limit, and whether the persona leaves with it."""

    message: Message
    usage: Usage
    cut: bool
    leaves: bool = False


Record = Callable[[int, Said], None]
"""Called with the turn (1-based) and what was said, once it exists."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A conversation that ended, and why in words where it was not as planned."""

    conversation: Conversation
    detail: str = ""


class _SimulatorSilent(Exception):
    """The persona has said nothing, in all its tries."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all conversations of a run share. `turns` counts messages of both sides and is even: the chatbot is last.

    `simulator` None: the scripted openings are all that the personas say, and `turns` is 2.
    """

    simulator: Simulator | NotedSimulator | None
    chatbot: Chatbot
    turns: int
    seed: int


async def converse(setting: Setting, persona: Persona, so_far: Conversation, record: Record) -> Ended:
    """Go on from `so_far` until the conversation ends; the persona speaks first.

    A failure that concerns this conversation alone becomes its ending. EngineDied is raised: it concerns all.
    """
    conversation, session = so_far, None
    try:
        session = await setting.chatbot.open(so_far, derive(setting.seed, so_far.id, "open"))
        while len(conversation.messages) < setting.turns:
            said = await _next(setting, session, persona, conversation)
            if said.message.text or said.message.speaker is Speaker.CHATBOT:
                conversation = replace(conversation, messages=(*conversation.messages, said.message))
                record(len(conversation.messages), said)
            if said.leaves:
                return Ended(replace(conversation, ending=Ending.PERSONA))
    except EngineDied:
        raise
    except ChatbotFailed as error:
        ending = Ending.OVERFLOW if isinstance(error, ChatbotOverflow) else Ending.CHATBOT
        return Ended(replace(conversation, ending=ending), str(error))
    except ContextOverflow as error:
        return Ended(replace(conversation, ending=Ending.OVERFLOW), str(error))
    except _SimulatorSilent as error:
        return Ended(replace(conversation, ending=Ending.SIMULATOR), str(error))
    except EngineError as error:
        return Ended(replace(conversation, ending=Ending.ERROR), str(error))
    finally:
        if session is not None:
            await session.aclose()
    return Ended(replace(conversation, ending=Ending.TURNS))


async def _next(setting: Setting, session: Session, persona: Persona, conversation: Conversation) -> Said:
    turn = len(conversation.messages) + 1
    if turn % 2 == 0:
        seed = derive(setting.seed, conversation.id, turn)
        reply = await session.reply(conversation.messages, seed)
        return Said(Message(Speaker.CHATBOT, reply.text), reply.usage, reply.cut)
    if turn == 1 and persona.opening is not None:
        return Said(Message(Speaker.PERSONA, persona.opening), NO_USAGE, cut=False)
    assert setting.simulator is not None, "a persona that says more than its opening is played by a model"
    return await _speak(setting.simulator, setting.seed, persona, conversation)


async def _speak(
    simulator: Simulator | NotedSimulator, run_seed: int, persona: Persona, conversation: Conversation
) -> Said:
    """The persona's message; an empty one without an end signal is asked for again."""
    usage, turn = Usage(), len(conversation.messages) + 1
    for attempt in range(TRIES):
        seed = derive(run_seed, conversation.id, turn, attempt)
        spoken = await simulator.speak(persona, conversation.messages, seed)
        usage += spoken.usage
        if spoken.text or spoken.leaves:
            return Said(Message(Speaker.PERSONA, spoken.text), usage, spoken.cut, spoken.leaves)
    raise _SimulatorSilent(f"the simulator gave an empty message {TRIES} times at turn {turn}")
