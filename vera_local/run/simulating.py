"""The stage that holds all conversations of a run. Knows no rubric."""

from __future__ import annotations

import asyncio

from vera_local.bundle import Persona
from vera_local.chatbot import LocalChatbot
from vera_local.conversation import Conversation, Ending, Message
from vera_local.engine.seam import Engine, Usage
from vera_local.run.admission import Admission
from vera_local.run.plan import Plan
from vera_local.run.progress import Meter, Watcher
from vera_local.run.stage import Stage
from vera_local.run.store import Store
from vera_local.simulate import NotedSimulator, Setting, Simulator, converse

FULL_MESSAGE = 0.5
"""The expected length of a message, as a part of its token limit: people and chatbots stop before it."""


async def simulate_stage(plan: Plan, store: Store, engines: tuple[Engine, Engine], watcher: Watcher) -> None:
    """Bring every conversation of the store to its end; `engines` host the simulator and the chatbot.

    Raises EngineDied (in an ExceptionGroup); what was said until then is in the store.
    """
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
    simulator = _from_notes(plan, engines[0]) or _in_character(plan, engines[0])
    chatbot = LocalChatbot(engines[1], plan.chatbot.draw, plan.system_prompt)
    return Setting(simulator, chatbot, plan.turns, plan.config.seed)


def _in_character(plan: Plan, engine: Engine) -> Simulator:
    prompts = plan.bundle.prompts
    return Simulator(
        engine=engine,
        draw=plan.simulator.draw,
        character=prompts.simulator,
        opening=prompts.opening.render({}),
        reminder=prompts.reminder,
        end_signal=plan.bundle.end_signal,
    )


def _from_notes(plan: Plan, engine: Engine) -> NotedSimulator | None:
    """None where the model needs no notes, or the bundle has none."""
    prompts = plan.bundle.prompts
    instruction, examples, notes = prompts.simulator_short, prompts.simulator_examples, prompts.simulator_notes
    short = plan.simulator.profile.roles.simulator.prompt == "short"
    if not short or instruction is None or examples is None or notes is None:
        return None
    shown = [example.render({}) for example in examples.paragraphs]
    return NotedSimulator(
        engine=engine,
        draw=plan.simulator.draw,
        instruction=instruction,
        examples=tuple(zip(shown[::2], shown[1::2], strict=True)),
        notes=notes.paragraphs,
        end_signal=plan.bundle.end_signal,
    )


async def _tokens(plan: Plan, setting: Setting, persona: Persona) -> int:
    """What a conversation is expected to keep, when it ends, in the KV cache of an engine that hosts it."""
    said = FULL_MESSAGE * plan.turns / 2 * (plan.simulator.draw.max_tokens + plan.chatbot.draw.max_tokens)
    seen_by_persona = int(said) + await setting.simulator.engine.count_tokens(setting.simulator.prompt(persona, ()))
    one_engine = plan.simulator.profile.name == plan.chatbot.profile.name and plan.simulator.url == plan.chatbot.url
    # The two sides see the history in different roles, so one engine keeps it twice.
    return seen_by_persona + (int(said) if one_engine else 0)


async def _hold(stage: Stage, setting: Setting, persona: Persona, conversation: Conversation, tokens: int) -> None:
    """One conversation, from admission to its end in the store."""

    def record(turn: int, message: Message, usage: Usage, leaves: bool) -> None:
        stage.store.add_message(conversation.id, turn, message, usage, Ending.PERSONA if leaves else None)
        stage.step(usage)

    async with stage.job(tokens):
        ended = await converse(setting, persona, conversation, record)
        said = ended.conversation
        assert said.ending is not None
        stage.store.end(said.id, said.ending, ended.detail)
        stage.meter.steps -= setting.turns - len(said.messages)
