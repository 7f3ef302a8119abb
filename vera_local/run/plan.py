"""A config with everything looked up: bundle, personas, profiles, folders. Opens no model and writes nothing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from vera_local.bundle import Bundle, Persona, load_bundle
from vera_local.conversation import Conversation
from vera_local.engine.folder import ROLE_DEFAULTS
from vera_local.engine.profile import EngineOptions, Profile, Role, Source, Template, find_profile
from vera_local.engine.seam import Draw
from vera_local.errors import UserError
from vera_local.run.config import EMBEDDED, EngineName, RoleConfig, RunConfig

DEMONSTRATION_TURNS = 6
"""Messages per conversation where the embedded model plays every role: enough to see each part at work on two cores."""


@dataclass(frozen=True, slots=True)
class Player:
    """A model in a role: its profile, the server that hosts it (None: `engine` does, here) and how it draws."""

    profile: Profile
    url: str | None
    key_env: str | None
    draw: Draw
    engine: EngineName = "vllm"

    @property
    def embedded(self) -> bool:
        """Whether this is the model that shows the machinery only."""
        return self.profile.source.embedded is not None


@dataclass(frozen=True)
class Plan:
    """A run, ready to start. `turns` counts messages and is even, since the chatbot has the last word.

    `simulator` None: the personas say their scripted openings and nothing more.
    """

    config: RunConfig
    bundle: Bundle
    personas: tuple[Persona, ...]
    turns: int
    simulator: Player | None
    chatbot: Player
    judge: Player
    system_prompt: str
    out: Path

    @property
    def speakers(self) -> tuple[Player, ...]:
        """The models that hold the conversations."""
        return (self.chatbot,) if self.simulator is None else (self.simulator, self.chatbot)

    def conversations(self) -> tuple[Conversation, ...]:
        """All conversations of the run, not yet begun, in a fixed order."""
        repeats = range(1, self.config.repeats + 1)
        return tuple(Conversation(f"{p.name}-{r}", p.name, r) for r in repeats for p in self.personas)


def make_plan(config: RunConfig) -> Plan:
    """Look up what the config names; raises UserError for what cannot be found."""
    bundle = load_bundle(config.bundle, config.target, config.end_semantics)
    simulator = _player(config, bundle, "simulator") if _needs_simulator(config, bundle) else None
    chatbot, judge = (_player(config, bundle, role) for role in ("chatbot", "judge"))
    small = all(player.embedded for player in (simulator, chatbot, judge) if player is not None)
    turns = config.turns or (min(DEMONSTRATION_TURNS, bundle.turns) if small else bundle.turns)
    return Plan(
        config=config,
        bundle=bundle,
        personas=_personas(config, bundle, small=small),
        turns=turns + turns % 2,
        simulator=simulator,
        chatbot=chatbot,
        judge=judge,
        system_prompt=_system_prompt(config, bundle),
        out=config.out or _default_folder(config, bundle),
    )


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
    if bundle.has_openings and turns <= 2:
        return False
    if bundle.prompts.persona is None:
        raise UserError(
            f"--turns {turns}: a persona of the bundle '{bundle.name}' says one scripted message and no more, so a "
            "conversation has 2 turns; leave turns out"
        )
    return True


def _player(config: RunConfig, bundle: Bundle, name: str) -> Player:
    role: RoleConfig = getattr(config, name) or RoleConfig(model=EMBEDDED)
    profile = find_profile(role.model) if role.url is None else _served(role.model)
    shipped: Role = getattr(profile.roles, name)
    names = ("temperature", "top_p", "max_tokens", "repetition_penalty")
    told = {n: own for n in names if (own := getattr(role, n, None)) is not None}
    if name in bundle.temperatures:
        told = {"temperature": bundle.temperatures[name]} | told
    draw = Draw(*(told.get(n, getattr(shipped, n)) for n in names))
    reasons = profile.template.thinking == "always"
    if reasons and role.url is not None and name == "judge":
        raise UserError(
            f"judge: {profile.name} behind a server reasons before every answer, which cannot be read yet; "
            "host it here or choose another model"
        )
    if reasons and role.url is None and not profile.template.answer_prefix:
        raise UserError(
            f"{name}: {profile.name} reasons before every answer and its profile has no template.answer_prefix that "
            "begins the answer; add it or choose another model"
        )
    if draw.max_tokens >= profile.context:
        raise UserError(
            f"{name}.max_tokens: {draw.max_tokens} leaves no room in the context of {profile.context} tokens; lower it"
        )
    return Player(profile, role.url, role.key_env, draw, config.engine)


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
    file = config.chatbot.system_prompt
    if file is None:
        own = bundle.prompts.chatbot
        # What a lab serves is tested as it is: only a bare model is told what to be.
        return "" if own is None or config.chatbot.url is not None else own.render({}).strip()
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: the chatbot's system prompt cannot be read ({error}); correct the path") from None


def _default_folder(config: RunConfig, bundle: Bundle) -> Path:
    """The same for the same config, so that the same command finds its run again."""
    text = json.dumps(config.model_dump(mode="json"), sort_keys=True)
    return Path("runs") / f"{bundle.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
