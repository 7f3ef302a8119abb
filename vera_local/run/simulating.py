"""The stage that holds all conversations of a run. Knows no rubric."""

from __future__ import annotations

import asyncio

from vera_local.bundle import Persona
from vera_local.chatbot import LocalChatbot
from vera_local.conversation import Conversation
from vera_local.engine.seam import Engine
from vera_local.run.admission import Admission
from vera_local.run.host import key_of
from vera_local.run.plan import Plan
from vera_local.run.progress import Meter, Watcher
from vera_local.run.stage import Stage
from vera_local.run.store import Store
from vera_local.simulate import NotedSimulator, Said, Setting, Simulator, converse

FULL_MESSAGE = 0.5
"""The expected length of a message, as a part of its token limit: people and chatbots stop before it."""


async def simulate_stage(plan: Plan, store: Store, engines: tuple[Engine, Engine], watcher: Watcher) -> None:
    """Bring every conversation of the store to its end; `engines` host the simulator and the chatbot.

    Raises EngineDied (in an ExceptionGroup); what was said until then is in the store.
    """
    store.reopen_failed()
    unfinished = [c for c in store.conversations() if c.ending is None]
    setting, personas = make_setting(plan, engines), {p.name: p for p in plan.personas}
    needs = {c.id: await _tokens(plan, setting, personas[c.persona]) for c in unfinished}
    admission = Admission.to(*(engine.limits for engine in engines))
    meter = Meter("Simulating", len(unfinished), sum(plan.turns - len(c.messages) for c in unfinished))
    with watcher.stage(meter) as changed:
        stage = Stage(store, admission, meter, changed)
        async with asyncio.TaskGroup() as group:
            for c in sorted(unfinished, key=lambda c: -needs[c.id]):
                group.create_task(_hold(stage, setting, personas[c.persona], c, needs[c.id]))


def make_setting(plan: Plan, engines: tuple[Engine, Engine]) -> Setting:
    """What all conversations of the plan share, on these engines."""
    short = plan.simulator.profile.roles.simulator.prompt == "short"
    simulator = _from_notes(plan, engines[0]) if short else _in_character(plan, engines[0])
    chatbot = LocalChatbot(engines[1], plan.chatbot.draw, plan.system_prompt)
    return Setting(simulator, chatbot, plan.turns, plan.config.seed)


def _in_character(plan: Plan, engine: Engine) -> Simulator:
    prompts = plan.bundle.prompts
    return Simulator(
        engine=engine,
        draw=plan.simulator.draw,
        character=prompts.simulator,
        opening=prompts.opening.render({}),
        reminder=prompts.reminder.render({}),
        end_signal=plan.bundle.end_signal,
    )


def _from_notes(plan: Plan, engine: Engine) -> NotedSimulator:
    prompts = plan.bundle.prompts
    shown = [example.render({}) for example in prompts.simulator_examples.paragraphs]
    return NotedSimulator(
        engine=engine,
        draw=plan.simulator.draw,
        instruction=prompts.simulator_short,
        examples=tuple(zip(shown[::2], shown[1::2], strict=True)),
        notes=prompts.simulator_notes.paragraphs,
        end_signal=plan.bundle.end_signal,
    )


async def _tokens(plan: Plan, setting: Setting, persona: Persona) -> int:
    """What a conversation is expected to keep, when it ends, in the KV cache of an engine that hosts it.

    An estimate: full-length messages would take twice as much. The chatbot's system prompt is one for all, so it is
    not counted; an engine that does not tell its KV cache is not asked for token counts either.
    """
    engine = setting.simulator.engine
    said = int(FULL_MESSAGE * plan.turns / 2 * (plan.simulator.draw.max_tokens + plan.chatbot.draw.max_tokens))
    prompt = setting.simulator.prompt(persona, ())
    before = 0 if engine.limits.kv_tokens is None else await engine.count_tokens(prompt)
    # The two sides see the history in different roles, so one engine keeps it twice.
    return before + (2 * said if key_of(plan.simulator) == key_of(plan.chatbot) else said)


async def _hold(stage: Stage, setting: Setting, persona: Persona, conversation: Conversation, tokens: int) -> None:
    """One conversation, from admission to its end in the store."""

    def record(turn: int, said: Said) -> None:
        stage.store.add_message(conversation.id, turn, said)
        stage.step(said.usage)

    async with stage.job(tokens):
        ended = await converse(setting, persona, conversation, record)
        held = ended.conversation
        assert held.ending is not None
        stage.store.end(held.id, held.ending, ended.detail)
        stage.meter.steps -= setting.turns - len(held.messages)
