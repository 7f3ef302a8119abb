"""A config with everything looked up: bundle, personas, profiles, folders. Opens no model and writes nothing."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vera_local.bundle import Bundle, Persona, load_bundle
from vera_local.chatbot import External, OpenAISettings
from vera_local.conversation import Conversation, Speaker
from vera_local.engine.folder import ROLE_DEFAULTS
from vera_local.engine.profile import EngineOptions, Profile, Role, Source, Template, find_profile
from vera_local.engine.seam import Draw
from vera_local.engine.window import Context
from vera_local.errors import UserError
from vera_local.judge import Mode
from vera_local.judge.jury import JURY, joins
from vera_local.run.config import (
    EMBEDDED,
    ChatbotConfig,
    EngineName,
    JudgeConfig,
    RoleConfig,
    RunConfig,
    SimulatorConfig,
)
from vera_local.simulate import MAX_WORDS

DEMONSTRATION_TURNS = 6
"""Messages per conversation where the embedded model plays every role: enough to see each part at work on two cores."""


@dataclass(frozen=True, slots=True)
class Player:
    """A model in a role: its profile, the server or else the engine that hosts it, how it draws, what is done when
    a history outgrows its context, and how long its messages may be where it plays personas."""

    profile: Profile
    url: str | None
    key_env: str | None
    draw: Draw
    engine: EngineName | None = "vllm"
    when_full: Context = Context.STOP
    max_words: int = MAX_WORDS

    @property
    def embedded(self) -> bool:
        """Whether this is the model that shows the machinery only."""
        return self.profile.source.embedded is not None


@dataclass(frozen=True, slots=True)
class Seat:
    """A judge's place in a run: it rates every conversation once.

    `name` stands in its verdicts: that of its `judge`, and `#2`, `#3` ... behind it for further repeats (`repeat`
    counts from 1). The budget of its reasoning is the player's `max_tokens`.
    """

    name: str
    judge: str
    repeat: int
    player: Player
    mode: Mode
    window: bool
    evidence: bool
    confidence: bool

    @property
    def budget(self) -> int:
        """Tokens it may reason with before it answers."""
        return 0 if self.mode is Mode.DIRECT else self.player.draw.max_tokens


@dataclass(frozen=True)
class Plan:
    """A run, ready to start. `turns` counts messages; the chatbot has the last, whoever speaks first.

    `simulators`: each plays every persona in a pool of conversations of its own; none: the personas say their scripted
    openings and nothing more. `earliest_end`: the first turn at
    which a persona may leave.
    """

    config: RunConfig
    bundle: Bundle
    personas: tuple[Persona, ...]
    turns: int
    earliest_end: int
    simulators: tuple[Player, ...]
    chatbot: Player | External
    judges: tuple[Seat, ...]
    system_prompt: str
    out: Path

    @property
    def speakers(self) -> tuple[Player, ...]:
        """The models of ours that hold the conversations."""
        return tuple(player for player in (*self.simulators, self.chatbot) if isinstance(player, Player))

    @property
    def first(self) -> Speaker:
        """Who speaks first."""
        return Speaker(self.config.first)

    def conversations(self) -> tuple[Conversation, ...]:
        """All conversations of the run, not yet begun, in a fixed order; the repeats of the first simulator come first,
        those of the next are counted on from there."""
        repeats = range(1, self.config.repeats * max(1, len(self.simulators)) + 1)
        return tuple(Conversation(f"{p.name}-{r}", p.name, r) for r in repeats for p in self.personas)


def make_plan(config: RunConfig) -> Plan:
    """Look up what the config names; raises UserError for what cannot be found."""
    bundle = load_bundle(config.bundle, config.target, config.end_semantics)
    simulators = _simulators(config, bundle)
    chatbot, judges = _chatbot(config, bundle), _seats(config, bundle)
    players = (*simulators, chatbot, *(seat.player for seat in judges))
    small = all(isinstance(player, Player) and player.embedded for player in players)
    turns = _turns(config, bundle, small=small)
    return Plan(
        config=config,
        bundle=bundle,
        personas=_personas(config, bundle, small=small),
        turns=turns,
        earliest_end=_earliest_end(config, bundle, turns),
        simulators=simulators,
        chatbot=chatbot,
        judges=judges,
        system_prompt=_system_prompt(config, bundle),
        out=config.out or _default_folder(config, bundle, small=small),
    )


def _chatbot(config: RunConfig, bundle: Bundle) -> Player | External:
    """A model of ours, or what the config says of another chatbot, at the bundle's temperature unless it says one."""
    chatbot = config.chatbot
    if isinstance(chatbot, ChatbotConfig):
        return _player(config, bundle, "chatbot", chatbot)
    published = bundle.temperatures.get("chatbot")
    if isinstance(chatbot, OpenAISettings) and chatbot.temperature is None and published is not None:
        return chatbot.model_copy(update={"temperature": published})
    return chatbot


def _simulators(config: RunConfig, bundle: Bundle) -> tuple[Player, ...]:
    """None where none is needed; UserError where two have one name."""
    if not _needs_simulator(config, bundle):
        return ()
    players = tuple(_player(config, bundle, "simulator", simulator) for simulator in config.simulator)
    for name, times in Counter(player.profile.name for player in players).items():
        if times > 1:
            raise UserError(
                f"simulator: {name} is named twice; for more conversations with it set repeats (--repeats N)"
            )
    return players


def _turns(config: RunConfig, bundle: Bundle, *, small: bool) -> int:
    """As asked for, or one more where the persona would have the last word."""
    turns = config.turns or (min(DEMONSTRATION_TURNS, bundle.turns) if small else bundle.turns)
    by_chatbot = turns % 2 == (0 if config.first == "persona" else 1)
    return turns if by_chatbot else turns + 1


def _earliest_end(config: RunConfig, bundle: Bundle, turns: int) -> int:
    """As asked for, or as far into these turns as the bundle has it, rounded up."""
    return config.earliest_end or math.ceil(bundle.earliest_end * turns / bundle.turns)


def judges_of(config: RunConfig) -> tuple[JudgeConfig, ...]:
    """The judges of the config; the embedded model where it names none."""
    return config.judge or (JudgeConfig(model=EMBEDDED),)


def judge_name(judge: JudgeConfig) -> str:
    """What a judge is called: its profile's name, and its mode behind it unless it answers at once."""
    name = _profile(judge).name
    return name if judge.mode == "direct" else f"{name}:{judge.mode}"


def _seats(config: RunConfig, bundle: Bundle) -> tuple[Seat, ...]:
    """A seat for each repeat of each judge; UserError where two have one name or one has the jury's."""
    seats = tuple(seat for judge in judges_of(config) for seat in _repeated(judge, config, bundle))
    for name, times in Counter(seat.name for seat in seats).items():
        if times > 1:
            raise UserError(
                f"judge: {name} is named twice; for further opinions of one judge set its repeats "
                "(--judge-repeats N), or let it judge in another mode"
            )
        if name == JURY or joins(name):
            raise UserError(f"judge: no judge can be called {name}, which is what several together are called")
    return seats


def _repeated(judge: JudgeConfig, config: RunConfig, bundle: Bundle) -> Iterator[Seat]:
    name, player, mode = judge_name(judge), _player(config, bundle, "judge", judge), Mode(judge.mode)
    _must_reason_as_asked(player, mode)
    for repeat in range(1, judge.repeats + 1):
        own = name if repeat == 1 else f"{name}#{repeat}"
        yield Seat(own, name, repeat, player, mode, judge.window, judge.evidence, judge.confidence)


def _must_reason_as_asked(player: Player, mode: Mode) -> None:
    """UserError where a judge cannot reason in its mode, or where its reasoning leaves no room in its context."""
    name, template = player.profile.name, player.profile.template
    if mode is Mode.THINK and template.thinks is None:
        raise UserError(
            f"judge: nothing tells how {name} ends its own reasoning, which mode think needs to know; "
            "set template.thinking and template.think_end in a profile of it, or judge in mode reason"
        )
    if mode is not Mode.THINK:
        _must_answer_at_once(player, "judge", "judge in mode think")
    if mode is not Mode.DIRECT:
        _must_leave_room(player, "judge")


def _personas(config: RunConfig, bundle: Bundle, *, small: bool) -> tuple[Persona, ...]:
    """Those the config asks for; else all, or one of each group where the run is to be small."""
    available = bundle.available(controls=config.controls)
    if config.controls and not any(p.control for p in available):
        raise UserError(f"--controls: the bundle '{bundle.name}' has no controls; leave controls out")
    wanted = config.personas
    if wanted is None:
        wanted = len({p.group for p in available}) if small else len(available)
    return bundle.choose(wanted, controls=config.controls)


def _needs_simulator(config: RunConfig, bundle: Bundle) -> bool:
    """Whether a persona says more than its scripted opening; UserError where the bundle cannot have it say more."""
    turns = config.turns or bundle.turns
    _must_begin(config, bundle)
    if bundle.has_openings and turns <= 2:
        return False
    if bundle.prompts.persona is None:
        raise UserError(
            f"--turns {turns}: a persona of the bundle '{bundle.name}' says one scripted message and no more, so a "
            "conversation has 2 turns; leave turns out"
        )
    return True


def _must_begin(config: RunConfig, bundle: Bundle) -> None:
    """UserError where the chatbot is to speak first and the personas' first messages are scripted."""
    if bundle.has_openings and config.first == "chatbot":
        raise UserError(
            f"--first chatbot: the personas of the bundle '{bundle.name}' begin with scripted messages; leave first out"
        )


def _player(config: RunConfig, bundle: Bundle, name: str, role: RoleConfig) -> Player:
    profile = _profile(role)
    shipped: Role = getattr(profile.roles, name)
    names = ("temperature", "top_p", "max_tokens", "repetition_penalty")
    told = {n: own for n in names if (own := getattr(role, n, None)) is not None}
    if name in bundle.temperatures:
        told = {"temperature": bundle.temperatures[name]} | told
    draw = Draw(*(told.get(n, getattr(shipped, n)) for n in names))
    engine, when_full = (config.engine if role.url is None else None), getattr(role, "context", Context.STOP)
    max_words = role.max_words if isinstance(role, SimulatorConfig) else MAX_WORDS
    player = Player(profile, role.url, role.key_env, draw, engine, when_full, max_words)
    if name != "judge":
        _must_answer_at_once(player, name, "add it")
        _must_leave_room(player, name)
    return player


def _must_answer_at_once(player: Player, role: str, remedy: str) -> None:
    """UserError where a model would reason before every answer."""
    name, template = player.profile.name, player.profile.template
    if template.thinking != "always":
        return
    if player.url is not None and role == "judge":
        raise UserError(
            f"{role}: {name} behind a server reasons before every answer; {remedy}, host it here or choose "
            "another model"
        )
    if player.url is None and not template.answer_prefix:
        raise UserError(
            f"{role}: {name} reasons before every answer and its profile has no template.answer_prefix that begins "
            f"the answer; {remedy} or choose another model"
        )


def _must_leave_room(player: Player, role: str) -> None:
    """UserError where what the role may write fills the context."""
    written, context = player.draw.max_tokens, player.profile.context
    if written >= context:
        raise UserError(f"{role}.max_tokens: {written} leaves no room in the context of {context} tokens; lower it")


def _profile(role: RoleConfig) -> Profile:
    return find_profile(role.model) if role.url is None else _served(role.model)


def _served(model: str) -> Profile:
    """The shipped profile of that name, or one for a model of which only the server knows more."""
    try:
        return find_profile(model)
    except UserError:
        return Profile(
            name=model,
            title=model,
            licence="not stated by the server",
            # Sizes are the server's concern; nothing here depends on them.
            weight_gb=1.0,
            kv_bytes_per_token=1,
            context=1_000_000,
            source=Source(path=f"served:{model}"),
            engine=EngineOptions(dtype="auto"),
            template=Template(system_role=True, thinking="none"),
            roles=ROLE_DEFAULTS,
        )


def _system_prompt(config: RunConfig, bundle: Bundle) -> str:
    chatbot = config.chatbot
    file = chatbot.system_prompt if isinstance(chatbot, ChatbotConfig | OpenAISettings) else None
    if file is None:
        own = bundle.prompts.chatbot
        # What a lab serves is tested as it is: only a bare model is told what to be.
        return own.render({}).strip() if own is not None and isinstance(chatbot, ChatbotConfig) else ""
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: the chatbot's system prompt cannot be read ({error}); correct the path") from None


def _default_folder(config: RunConfig, bundle: Bundle, *, small: bool) -> Path:
    """The same for the same conversations, so that the same command, or one with a further judge, finds its run."""
    parts = config.model_dump(mode="json", exclude={"judge", "check_personas"}) | {"small": small}
    text = json.dumps(parts, sort_keys=True)
    return Path("runs") / f"{bundle.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
