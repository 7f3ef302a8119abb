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
from vera_local.errors import UserError
from vera_local.run.config import SPREAD, RunConfig
from vera_local.run.players import Player, make_player
from vera_local.run.roles import ChatbotConfig
from vera_local.run.seats import Seat, seats_of

DEMONSTRATION_TURNS = 6
"""Messages per conversation where the embedded model plays every role: enough to see each part at work on two cores."""


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

    @property
    def count(self) -> int:
        """How many conversations the run has."""
        return len(self.personas) * self.config.repeats * max(1, len(self.simulators))

    def conversations(self) -> Iterator[Conversation]:
        """All conversations of the run, not yet begun, in a fixed order; the repeats of the first simulator come first,
        those of the next are counted on from there."""
        repeats = range(1, self.config.repeats * max(1, len(self.simulators)) + 1)
        return (Conversation(f"{p.name}-{r}", p.name, r) for r in repeats for p in self.personas)


def make_plan(config: RunConfig, bundle: Bundle | None = None) -> Plan:
    """Look up what the config names, but for its `bundle` where that was loaded before.

    Raises UserError for what cannot be found.
    """
    _must_name_cluster(config)
    bundle = bundle or load_bundle(config.bundle, config.target, config.end_semantics)
    simulators = _simulators(config, bundle)
    chatbot, judges = _chatbot(config, bundle), seats_of(config, bundle)
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


def _must_name_cluster(config: RunConfig) -> None:
    for key in ("actors", "actor_gpus"):
        if getattr(config, key) is not None and config.ray is None:
            raise UserError(f"--{key.replace('_', '-')}: holds for workers of a Ray cluster; name it with --ray")


def _chatbot(config: RunConfig, bundle: Bundle) -> Player | External:
    """A model of ours, or what the config says of another chatbot, at the bundle's temperature unless it says one."""
    chatbot = config.chatbot
    if isinstance(chatbot, ChatbotConfig):
        return make_player(config.engine, bundle, "chatbot", chatbot)
    published = bundle.temperatures.get("chatbot")
    if isinstance(chatbot, OpenAISettings) and chatbot.temperature is None and published is not None:
        return chatbot.model_copy(update={"temperature": published})
    return chatbot


def _simulators(config: RunConfig, bundle: Bundle) -> tuple[Player, ...]:
    """None where none is needed; UserError where two have one name."""
    if not _needs_simulator(config, bundle):
        return ()
    players = tuple(make_player(config.engine, bundle, "simulator", simulator) for simulator in config.simulator)
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
    parts = config.model_dump(mode="json", exclude={"judge", "check_personas", "guard", *SPREAD}) | {"small": small}
    text = json.dumps(parts, sort_keys=True)
    return Path("runs") / f"{bundle.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
