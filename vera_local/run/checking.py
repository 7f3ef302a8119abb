"""The stage in which the first judge rates the personas of all conversations of a run. Knows no rubric."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from functools import partial

from vera_local.bundle import Persona
from vera_local.conversation import Head
from vera_local.engine.admission import Admission, Room
from vera_local.engine.seam import Engine
from vera_local.judge import check_persona
from vera_local.judge.exhibit import Exhibit, exhibit
from vera_local.run.heads import longest_first
from vera_local.run.ledger import Ledger
from vera_local.run.plan import Plan
from vera_local.run.progress import Meter, Watcher
from vera_local.run.stage import Held, Job, Stage
from vera_local.run.store import Store

STAGE, ROLE = "check personas", "judge"
"""What this goes by in the account of what a run used."""

ENGINE = "judge"
"""What the one engine of this stage goes by."""

REPLY = 200
"""Tokens allowed for the question, the answer and the instructions beside persona and transcript."""


async def check_stage(plan: Plan, store: Store, engine: Engine, ledger: Ledger, watcher: Watcher) -> None:
    """Rate the persona of every conversation in which one spoke; raises EngineDied (in an ExceptionGroup)."""
    waiting = unchecked(plan, store)
    meter = Meter("Checking personas", len(waiting), len(waiting))
    metered = ledger.metered(engine, STAGE, ROLE, plan.judges[0].judge)
    with watcher.stage(meter) as changed, ledger.stage(STAGE):
        stage = Stage(store, Admission({ENGINE: [Room.of(engine.limits)]}), meter, changed)
        await stage.all(_jobs(stage, plan, metered, ledger, waiting))


def unchecked(plan: Plan, store: Store) -> tuple[Head, ...]:
    """The conversations that ended, in which a persona spoke, and which the first judge has not rated so, longest
    first."""
    name, known = plan.judges[0].name, {p.name for p in plan.personas}
    checked = store.simulated.checked(name)
    return longest_first(
        head
        for head in store.heads()
        if head.id not in checked and head.persona in known and head.persona_spoke and not head.unfinished
    )


async def _jobs(
    stage: Stage, plan: Plan, engine: Engine, ledger: Ledger, waiting: Iterable[Head]
) -> AsyncIterator[Job]:
    personas = {p.name: p for p in plan.personas}
    for head in waiting:
        shown = exhibit(stage.store.conversation(head.id), plan.config.seed, engine.markers)
        persona = personas[head.persona]
        work = partial(_check, stage, plan, engine, ledger, persona, shown)
        yield Job({ENGINE: await _tokens(engine, shown.text, persona)}, work)


async def _check(
    stage: Stage, plan: Plan, engine: Engine, ledger: Ledger, persona: Persona, shown: Exhibit, _: Held
) -> None:
    check = await check_persona(engine, persona, shown, plan.config.seed)
    stage.store.simulated.add_check(shown.conversation, plan.judges[0].name, check)
    stage.step(check.usage)
    ledger.kept(STAGE, ROLE, plan.judges[0].judge, check.usage)


async def _tokens(engine: Engine, transcript: str, persona: Persona) -> int:
    """What both questions keep in the KV cache together; 0 for an engine that does not tell its own."""
    if engine.limits.kv_tokens is None:
        return 0
    text = "\n".join((transcript, *persona.fields.values(), *persona.fields))
    return min(len(await engine.tokens(text)) + REPLY, engine.limits.kv_tokens)
