"""The stage in which the first judge rates the personas of all conversations of a run. Knows no rubric."""

from __future__ import annotations

import asyncio

from vera_local.bundle import Persona
from vera_local.conversation import Head
from vera_local.engine.admission import Admission
from vera_local.engine.seam import Engine
from vera_local.judge import check_persona
from vera_local.judge.exhibit import Exhibit, exhibit
from vera_local.run.plan import Plan
from vera_local.run.progress import Meter, Watcher
from vera_local.run.stage import Stage
from vera_local.run.store import Store

REPLY = 200
"""Tokens allowed for the question, the answer and the instructions beside persona and transcript."""


async def check_stage(plan: Plan, store: Store, engine: Engine, watcher: Watcher) -> None:
    """Rate the persona of every conversation in which one spoke; raises EngineDied (in an ExceptionGroup)."""
    personas, waiting = {p.name: p for p in plan.personas}, unchecked(plan, store)
    meter = Meter("Checking personas", len(waiting), len(waiting))
    with watcher.stage(meter) as changed:
        stage = Stage(store, Admission.to(engine.limits), meter, changed)
        async with asyncio.TaskGroup() as group:
            for head in waiting:
                group.create_task(_check(stage, plan, engine, personas[head.persona], head))


def unchecked(plan: Plan, store: Store) -> list[Head]:
    """The conversations that ended, in which a persona spoke, and which the first judge has not rated so."""
    name, known = plan.judges[0].name, {p.name for p in plan.personas}
    checked = store.simulated.checked(name)
    waiting = [head for head in store.heads() if head.id not in checked and head.persona in known]
    return [head for head in waiting if head.persona_spoke and not head.unfinished]


async def _check(stage: Stage, plan: Plan, engine: Engine, persona: Persona, head: Head) -> None:
    def shown() -> Exhibit:
        # Made anew where it is used: no text is held by those that wait.
        return exhibit(stage.store.conversation(head.id), plan.config.seed, engine.markers)

    async with stage.job(await _tokens(engine, shown().text, persona)):
        check = await check_persona(engine, persona, shown(), plan.config.seed)
        stage.store.simulated.add_check(head.id, plan.judges[0].name, check)
        stage.step(check.usage)


async def _tokens(engine: Engine, transcript: str, persona: Persona) -> int:
    """What both questions keep in the KV cache together; 0 for an engine that does not tell its own."""
    if engine.limits.kv_tokens is None:
        return 0
    text = "\n".join((transcript, *persona.fields.values(), *persona.fields))
    return min(len(await engine.tokens(text)) + REPLY, engine.limits.kv_tokens)
