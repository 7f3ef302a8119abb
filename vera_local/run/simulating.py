"""The stage that holds all conversations of a run. Knows no rubric."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, Protocol

from vera_local.bundle import Persona, PersonaPrompts
from vera_local.chatbot import Chatbot, LocalChatbot
from vera_local.conversation import Conversation, Head, Message, Speaker
from vera_local.engine.admission import Admission
from vera_local.engine.seam import ChatMessage, Draw, Engine
from vera_local.engine.window import Context
from vera_local.run.chatbots import EngineOf, place_of
from vera_local.run.expected import Footprint, MessageLengths
from vera_local.run.habits import longest_reply
from vera_local.run.host import Host, key_of
from vera_local.run.ledger import Ledger
from vera_local.run.plan import Plan
from vera_local.run.players import Player
from vera_local.run.progress import Meter, Watcher
from vera_local.run.records import Records
from vera_local.run.stage import Held, Job, Stage
from vera_local.run.store import Store
from vera_local.simulate import MAX_WORDS, NotedSimulator, Rejected, Said, Setting, Simulator, converse

CHARACTERS = 4
"""Of a text that one token stands for, where a text is not worth counting."""

STAGE = "simulate"
ROLES = {Speaker.PERSONA: "simulator", Speaker.CHATBOT: "chatbot"}
"""What the stage and its sides go by in the account of what a run used."""

Arrived = Callable[[Head], None]
"""Called with each conversation that came to its end."""


class Remembers(Protocol):
    """Says whether a chatbot keeps what was said in sessions of its own."""

    @property
    def remembers(self) -> bool:
        """As `Chatbot.remembers`."""
        ...


@dataclass(frozen=True)
class Talk:
    """All that the conversations of a run are held with. `all_in` is called when the last of them was let in."""

    plan: Plan
    store: Records
    host: Host
    chatbot: Chatbot
    ledger: Ledger
    arrived: Arrived
    all_in: Callable[[], None] = lambda: None

    def player(self, pool: int, side: Speaker) -> Player | None:
        """The model of ours that plays a side of the conversations with a pool's simulator; None where none does."""
        if side is Speaker.PERSONA:
            return self.plan.simulators[pool] if self.plan.simulators else None
        return self.plan.chatbot if isinstance(self.plan.chatbot, Player) else None

    def engines(self, pool: int) -> dict[Speaker, Hashable]:
        """What the engine of each side that is ours goes by."""
        players = {side: self.player(pool, side) for side in Speaker}
        keys = {side: key_of(player) for side, player in players.items() if player is not None}
        # Equal ones become one object: it is compared with every message.
        same = {key: key for key in keys.values()}
        return {side: same[key] for side, key in keys.items()}

    def contexts(self, pool: int) -> dict[Speaker, int]:
        """The context of the engine of each side that is ours, in tokens."""
        players = {side: self.player(pool, side) for side in Speaker}
        return {side: player.profile.context for side, player in players.items() if player is not None}


async def simulate_stage(talk: Talk, store: Store, admission: Admission[Hashable], watcher: Watcher) -> None:
    """Bring every conversation of the store to its end on the engines of the plan's speakers.

    Raises EngineDied (in an ExceptionGroup) and UserError; what was said until then is in the store.
    """
    store.reopen_failed()
    unfinished = to_go_on(store, talk.chatbot, store.unfinished(), watcher.say)
    meter = Meter("Simulating", len(unfinished), sum(talk.plan.turns - head.turns for head in unfinished))
    await _simulate(talk, admission, watcher, meter, _longest_first(_Footprints.of(talk), unfinished))


async def simulate_arriving(
    talk: Talk, heads: AsyncIterable[Head], admission: Admission[Hashable], watcher: Watcher
) -> None:
    """The same for conversations that are told one by one, each when there is room for another."""
    await _simulate(talk, admission, watcher, Meter("Simulating", 0, 0), _as_they_come(_Footprints.of(talk), heads))


def to_go_on(store: Store, chatbot: Remembers, unfinished: Sequence[Head], say: Callable[[str], None]) -> list[Head]:
    """Conversations of the store as they go on; those that the chatbot held in a session of its own begin anew."""
    lost = {head.id for head in unfinished if chatbot.remembers and head.by_chatbot}
    if lost:
        say(f"{len(lost)} conversations begin anew: the chatbot kept their history in sessions that are over")
        store.begin_anew(lost)
    return [head._replace(turns=0, by_chatbot=0, characters=0) if head.id in lost else head for head in unfinished]


async def _simulate(
    talk: Talk, admission: Admission[Hashable], watcher: Watcher, meter: Meter, heads: AsyncIterator[_Measured]
) -> None:
    with watcher.stage(meter) as changed, talk.ledger.stage(STAGE):
        stage = Stage(admission, meter, changed)
        await stage.all(_jobs(talk, stage, heads))


async def _jobs(talk: Talk, stage: Stage, heads: AsyncIterator[_Measured]) -> AsyncIterator[Job]:
    places = {} if talk.chatbot.places is None else {place_of(talk.plan): 0}
    async for head, persona, footprint in heads:
        holding = _Holding(talk, stage, pool_of(talk.plan, head), persona, head.id, footprint)
        yield Job(footprint.needs() | places, holding.hold)
    talk.all_in()


async def _longest_first(footprints: _Footprints, unfinished: Sequence[Head]) -> AsyncIterator[_Measured]:
    """The conversations, those that are expected to become the longest first."""
    measured = {head.id: await footprints.measure(head) for head in unfinished}
    for head in sorted(unfinished, key=lambda head: -sum(measured[head.id].footprint.needs().values())):
        yield measured.pop(head.id)


async def _as_they_come(footprints: _Footprints, heads: AsyncIterable[Head]) -> AsyncIterator[_Measured]:
    async for head in heads:
        yield await footprints.measure(head)


class _Measured(NamedTuple):
    """A conversation, its persona and what it is expected to keep."""

    head: Head
    persona: Persona
    footprint: Footprint


@dataclass(frozen=True, slots=True)
class _Footprints:
    """What is expected of the conversations with each simulator, by its pool."""

    talk: Talk
    personas: Mapping[str, Persona]
    settings: Sequence[Setting]
    lengths: Sequence[MessageLengths]
    prompts: _Prompts

    @classmethod
    def of(cls, talk: Talk) -> _Footprints:
        """Before anything was said."""
        pools = range(max(1, len(talk.plan.simulators)))
        settings = [make_setting(talk.plan, pool, talk.host.engine, talk.chatbot) for pool in pools]
        lengths = [MessageLengths.of(_limits(talk.plan, pool)) for pool in pools]
        return cls(talk, {p.name: p for p in talk.plan.personas}, settings, lengths, _Prompts(settings))

    async def measure(self, head: Head) -> _Measured:
        """One conversation, with what it is expected to keep."""
        talk, pool, persona = self.talk, pool_of(self.talk.plan, head), self.personas[head.persona]
        noted = isinstance(self.settings[pool].simulator, NotedSimulator)
        footprint = Footprint(
            engines=talk.engines(pool),
            before=await self.prompts.tokens(pool, persona),
            said=head.characters // CHARACTERS,
            left=talk.plan.turns - head.turns,
            lengths=self.lengths[pool],
            whole=frozenset({Speaker.CHATBOT} if noted else Speaker),
            contexts=talk.contexts(pool),
        )
        return _Measured(head, persona, footprint)


def pool_of(plan: Plan, head: Head) -> int:
    """Which simulator's conversation it is."""
    return (head.repeat - 1) // plan.config.repeats


def make_setting(plan: Plan, pool: int, engine_of: EngineOf, chatbot: Chatbot) -> Setting:
    """What a conversation with the simulator of a pool is held with, on these engines."""
    player = plan.simulators[pool] if plan.simulators else None
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


def _limits(plan: Plan, pool: int) -> dict[Speaker, int]:
    """The most tokens of a message of each side, for sides that write messages of their own."""
    persona = {Speaker.PERSONA: plan.simulators[pool].draw.max_tokens} if plan.simulators else {}
    return {**persona, Speaker.CHATBOT: longest_reply(plan.chatbot)}


@dataclass(slots=True)
class _Prompts:
    """What stands before a conversation, in tokens of the engine that plays its persona; counted once per persona."""

    settings: Sequence[Setting]
    counted: dict[tuple[int, str], int] = field(default_factory=dict)

    async def tokens(self, pool: int, persona: Persona) -> int:
        """0 where the engine does not tell its KV cache: it is then not asked for token counts either."""
        place = pool, persona.name
        if place not in self.counted:
            self.counted[place] = await self._count(self.settings[pool], persona)
        return self.counted[place]

    async def _count(self, setting: Setting, persona: Persona) -> int:
        if (simulator := setting.simulator) is not None:
            return await _counted(simulator.engine, simulator.prompt(persona, ()))
        chatbot, opening = setting.chatbot, Message(Speaker.PERSONA, persona.opening or "")
        return await _counted(chatbot.engine, chatbot.prompt((opening,))) if isinstance(chatbot, LocalChatbot) else 0


async def _counted(engine: Engine, prompt: Sequence[ChatMessage]) -> int:
    return 0 if engine.limits.kv_tokens is None else await engine.count_tokens(prompt)


@dataclass(frozen=True)
class _Holding:
    """One conversation, from its admission to its end in the store."""

    talk: Talk
    stage: Stage
    pool: int
    persona: Persona
    id: str
    footprint: Footprint

    async def hold(self, lease: Held) -> None:
        store, setting = self.talk.store, self._setting(lease)
        record = partial(self._record, lease)
        ended = await converse(setting, self.persona, self._so_far(), record, self._reject)
        held = ended.conversation
        assert held.ending is not None
        store.end(held.id, held.ending, ended.detail)
        self.stage.meter.steps -= setting.turns - len(held.messages)
        self.talk.arrived(held.head)

    def _so_far(self) -> Conversation:
        """What was said; nothing any more, where it moved here and the chatbot kept its history in a session."""
        store, so_far = self.talk.store, self.talk.store.conversation(self.id)
        if not (self.talk.chatbot.remembers and any(m.speaker is Speaker.CHATBOT for m in so_far.messages)):
            return so_far
        store.begin_anew([self.id])
        self.footprint.began_anew(len(so_far.messages))
        self.stage.meter.steps += len(so_far.messages)
        return store.conversation(self.id)

    def _setting(self, lease: Held) -> Setting:
        """On the replicas that it was let in to, so that its beginnings stay in their caches."""
        talk, chatbot = self.talk, self.talk.chatbot

        def engine_of(side: Speaker, player: Player) -> Engine:
            key = key_of(player)
            engine, requests = talk.host.engines(player)[lease.replica(key)], lease.room(key).requests
            return talk.ledger.metered(engine, STAGE, ROLES[side], player.profile.name, requests)

        if isinstance(chatbot, LocalChatbot) and isinstance(talk.plan.chatbot, Player):
            chatbot = replace(chatbot, engine=engine_of(Speaker.CHATBOT, talk.plan.chatbot))
        return make_setting(talk.plan, self.pool, partial(engine_of, Speaker.PERSONA), chatbot)

    def _record(self, lease: Held, turn: int, said: Said) -> None:
        side = said.message.speaker
        self.talk.store.add_message(self.id, turn, said)
        self.footprint.grew(side, said.usage)
        for key, tokens in self.footprint.needs().items():
            lease.resize(key, tokens)
        self.stage.step(said.usage)
        if (player := self.talk.player(self.pool, side)) is not None:
            self.talk.ledger.kept(STAGE, ROLES[side], player.profile.name, said.usage)

    def _reject(self, turn: int, rejected: Rejected) -> None:
        self.talk.store.simulated.add_rejected(self.id, turn, rejected)
        self.stage.meter.usage += rejected.usage
