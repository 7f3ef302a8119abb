"""The stage that holds all conversations of a run. Knows no rubric."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from vera_local.bundle import Persona, PersonaPrompts
from vera_local.chatbot import Chatbot, External, LocalChatbot, OpenAISettings
from vera_local.conversation import Conversation, Message, Speaker
from vera_local.engine.admission import Admission
from vera_local.engine.folder import ROLE_DEFAULTS
from vera_local.engine.seam import Draw, Engine
from vera_local.engine.window import Context
from vera_local.run.chatbots import EngineOf, opened_chatbot
from vera_local.run.host import key_of
from vera_local.run.plan import Plan
from vera_local.run.players import Player
from vera_local.run.progress import Meter, Watcher
from vera_local.run.stage import Stage
from vera_local.run.store import Store
from vera_local.simulate import MAX_WORDS, NotedSimulator, Rejected, Said, Setting, Simulator, converse

FULL_MESSAGE = 0.5
"""The expected length of a message, as a part of its token limit: people and chatbots stop before it."""


async def simulate_stage(plan: Plan, store: Store, engine_of: EngineOf, watcher: Watcher) -> None:
    """Bring every conversation of the store to its end on the engines of the plan's speakers.

    Raises EngineDied (in an ExceptionGroup) and UserError; what was said until then is in the store.
    """
    async with opened_chatbot(plan, engine_of) as chatbot:
        await _simulate(plan, store, engine_of, chatbot, watcher)


async def _simulate(plan: Plan, store: Store, engine_of: EngineOf, chatbot: Chatbot, watcher: Watcher) -> None:
    unfinished = _unfinished(store, chatbot, watcher)
    settings, personas = make_settings(plan, engine_of, chatbot), {p.name: p for p in plan.personas}
    pools = {c.id: (c.repeat - 1) // plan.config.repeats for c in unfinished}
    needs = {c.id: await _tokens(plan, pools[c.id], settings[pools[c.id]], personas[c.persona]) for c in unfinished}
    limits = [engine_of(player).limits for player in plan.speakers]
    admission = Admission.to(*limits, jobs=chatbot.places or max(1, len(unfinished)))
    meter = Meter("Simulating", len(unfinished), sum(plan.turns - len(c.messages) for c in unfinished))
    with watcher.stage(meter) as changed:
        stage = Stage(store, admission, meter, changed)
        async with asyncio.TaskGroup() as group:
            for c in sorted(unfinished, key=lambda c: -needs[c.id]):
                group.create_task(_hold(stage, settings[pools[c.id]], personas[c.persona], c, needs[c.id]))


def _unfinished(store: Store, chatbot: Chatbot, watcher: Watcher) -> list[Conversation]:
    """The conversations to go on with; those that the chatbot held in a session of its own begin anew."""
    store.reopen_failed()
    unfinished = [c for c in store.conversations() if c.ending is None]
    lost = {c.id for c in unfinished if chatbot.remembers and any(m.speaker is Speaker.CHATBOT for m in c.messages)}
    if lost:
        watcher.say(f"{len(lost)} conversations begin anew: the chatbot kept their history in sessions that are over")
        store.begin_anew(lost)
    return [replace(c, messages=()) if c.id in lost else c for c in unfinished]


def make_settings(plan: Plan, engine_of: EngineOf, chatbot: Chatbot) -> tuple[Setting, ...]:
    """What all conversations with one simulator share, by simulator, on these engines; one where there is none."""
    return tuple(_setting(plan, player, engine_of, chatbot) for player in plan.simulators or (None,))


def _setting(plan: Plan, player: Player | None, engine_of: EngineOf, chatbot: Chatbot) -> Setting:
    return Setting(
        simulator=None if player is None else _simulator(plan, player, engine_of),
        chatbot=chatbot,
        turns=plan.turns,
        seed=plan.config.seed,
        first=plan.first,
        earliest_end=plan.earliest_end,
        max_words=MAX_WORDS if player is None else player.max_words,
        max_total_words=plan.config.max_total_words,
    )


def _simulator(plan: Plan, player: Player, engine_of: EngineOf) -> Simulator | NotedSimulator:
    prompts = plan.bundle.prompts.persona
    assert prompts is not None, "a plan has a simulator only where the bundle has its prompts"
    parts = engine_of(player), player.draw, prompts, plan.bundle.end_signal
    noted = _from_notes(*parts) if player.profile.roles.simulator.prompt == "short" else None
    return noted or _in_character(*parts, player.when_full)


def _in_character(engine: Engine, draw: Draw, prompts: PersonaPrompts, end_signal: str, context: Context) -> Simulator:
    return Simulator(
        engine=engine,
        draw=draw,
        character=prompts.simulator,
        opening=prompts.opening.render({}),
        reminder=prompts.reminder,
        end_signal=end_signal,
        context=context,
    )


def _from_notes(engine: Engine, draw: Draw, prompts: PersonaPrompts, end_signal: str) -> NotedSimulator | None:
    """None where the bundle has no notes."""
    instruction, examples, notes = prompts.simulator_short, prompts.simulator_examples, prompts.simulator_notes
    if instruction is None or examples is None or notes is None:
        return None
    shown = [example.render({}) for example in examples.paragraphs]
    return NotedSimulator(
        engine=engine,
        draw=draw,
        instruction=instruction,
        examples=tuple(zip(shown[::2], shown[1::2], strict=True)),
        notes=notes.paragraphs,
        end_signal=end_signal,
    )


async def _tokens(plan: Plan, pool: int, setting: Setting, persona: Persona) -> int:
    """What a conversation is expected to keep, when it ends, in the KV cache of an engine that hosts it.

    An estimate: full-length messages would take twice as much. The chatbot's system prompt is one for all, so it is
    not counted; an engine that does not tell its KV cache is not asked for token counts either.
    """
    simulator = setting.simulator
    if simulator is None:
        return await _tokens_of_reply(setting.chatbot, persona)
    player = plan.simulators[pool]
    said = int(FULL_MESSAGE * plan.turns / 2 * (player.draw.max_tokens + _longest_reply(plan.chatbot)))
    prompt = simulator.prompt(persona, ())
    before = 0 if simulator.engine.limits.kv_tokens is None else await simulator.engine.count_tokens(prompt)
    # The two sides see the history in different roles, so one engine keeps it twice.
    shared = isinstance(plan.chatbot, Player) and key_of(player) == key_of(plan.chatbot)
    return before + (2 * said if shared else said)


def _longest_reply(chatbot: Player | External) -> int:
    """In tokens; what another's chatbot may write is not known, so that of our own models stands for it."""
    if isinstance(chatbot, Player):
        return chatbot.draw.max_tokens
    told = chatbot.max_tokens if isinstance(chatbot, OpenAISettings) else None
    return told or ROLE_DEFAULTS.chatbot.max_tokens


async def _tokens_of_reply(chatbot: Chatbot, persona: Persona) -> int:
    """`_tokens` where the chatbot answers the persona's opening and nothing else is written."""
    if not isinstance(chatbot, LocalChatbot):
        return 0
    opening = Message(Speaker.PERSONA, persona.opening or "")
    if chatbot.engine.limits.kv_tokens is None:
        return 0
    return await chatbot.engine.count_tokens(chatbot.prompt((opening,))) + int(FULL_MESSAGE * chatbot.draw.max_tokens)


async def _hold(stage: Stage, setting: Setting, persona: Persona, conversation: Conversation, tokens: int) -> None:
    """One conversation, from admission to its end in the store."""

    def record(turn: int, said: Said) -> None:
        stage.store.add_message(conversation.id, turn, said)
        stage.step(said.usage)

    def reject(turn: int, rejected: Rejected) -> None:
        stage.store.simulated.add_rejected(conversation.id, turn, rejected)
        stage.meter.usage += rejected.usage

    async with stage.job(tokens):
        ended = await converse(setting, persona, conversation, record, reject)
        held = ended.conversation
        assert held.ending is not None
        stage.store.end(held.id, held.ending, ended.detail)
        stage.meter.steps -= setting.turns - len(held.messages)
