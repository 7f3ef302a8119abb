"""The stage in which the first judge rates the personas of all conversations of a run. Knows no rubric."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Sequence
from dataclasses import dataclass
from functools import partial

from vera_local.bundle import Persona
from vera_local.conversation import Head
from vera_local.engine.admission import Admission
from vera_local.engine.seam import Engine
from vera_local.judge import check_persona
from vera_local.judge.exhibit import Exhibit, exhibit
from vera_local.run.heads import longest_first
from vera_local.run.host import Key, key_of
from vera_local.run.judging import Cases
from vera_local.run.ledger import Ledger
from vera_local.run.plan import Plan
from vera_local.run.progress import Meter, Watcher
from vera_local.run.records import Records
from vera_local.run.stage import Held, Job, Stage
from vera_local.run.store import Store

STAGE, ROLE = "check personas", "judge"
"""What this goes by in the account of what a run used."""

REPLY = 200
"""Tokens allowed for the question, the answer and the instructions beside persona and transcript."""


async def check_stage(
    plan: Plan,
    store: Records,
    waiting: Cases,
    engines: Sequence[Engine],
    admission: Admission[Hashable],
    ledger: Ledger,
    watcher: Watcher,
) -> None:
    """Rate the persona of each conversation on one of the first judge's engines, which others may share; raises
    EngineDied (in an ExceptionGroup)."""
    meter = Meter("Checking personas", waiting.size, waiting.size)
    metered = [ledger.metered(engine, STAGE, ROLE, plan.judges[0].judge) for engine in engines]
    with watcher.stage(meter) as changed, ledger.stage(STAGE):
        stage = Stage(admission, meter, changed)
        await stage.all(_jobs(_Check(stage, plan, store, metered, ledger), waiting))


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


@dataclass(frozen=True, slots=True)
class _Check:
    """All that personas are rated with."""

    stage: Stage
    plan: Plan
    store: Records
    engines: Sequence[Engine]
    ledger: Ledger

    @property
    def key(self) -> Key:
        """What the engine goes by."""
        return key_of(self.plan.judges[0].player)

    async def rate(self, persona: Persona, shown: Exhibit, lease: Held) -> None:
        """One persona, as it is in one conversation."""
        check = await check_persona(self.engines[lease.replica(self.key)], persona, shown, self.plan.config.seed)
        self.store.simulated.add_check(shown.conversation, self.plan.judges[0].name, check)
        self.stage.step(check.usage)
        self.ledger.kept(STAGE, ROLE, self.plan.judges[0].judge, check.usage)


async def _jobs(check: _Check, waiting: Cases) -> AsyncIterator[Job]:
    personas = {p.name: p for p in check.plan.personas}
    async for id in waiting:
        conversation = check.store.conversation(id)
        shown = exhibit(conversation, check.plan.config.seed, check.engines[0].markers)
        persona = personas[conversation.persona]
        yield Job(
            {check.key: await _tokens(check.engines[0], shown.text, persona)}, partial(check.rate, persona, shown)
        )


async def _tokens(engine: Engine, transcript: str, persona: Persona) -> int:
    """What both questions keep in the KV cache together; 0 for an engine that does not tell its own."""
    if engine.limits.kv_tokens is None:
        return 0
    text = "\n".join((transcript, *persona.fields.values(), *persona.fields))
    return min(len(await engine.tokens(text)) + REPLY, engine.limits.kv_tokens)
