"""A model in a role: its profile, host and draw. Knows no other role and no conversation."""

from __future__ import annotations

from dataclasses import dataclass

from vera_local.bundle import Bundle
from vera_local.engine.folder import ROLE_DEFAULTS
from vera_local.engine.profile import EngineOptions, Profile, Role, Source, Template, find_profile
from vera_local.engine.seam import Draw
from vera_local.engine.server import Address
from vera_local.engine.window import Context
from vera_local.errors import UserError
from vera_local.run.config import EngineName
from vera_local.run.roles import RoleConfig, SimulatorConfig
from vera_local.simulate import MAX_WORDS


@dataclass(frozen=True, slots=True)
class Player:
    """A model in a role: its profile, the servers or else the engine that hosts it, how it draws, what is done when
    a history outgrows its context, and how long its messages may be where it plays personas."""

    profile: Profile
    servers: tuple[Address, ...]
    key_env: str | None
    draw: Draw
    engine: EngineName | None = "vllm"
    when_full: Context = Context.STOP
    max_words: int = MAX_WORDS

    @property
    def url(self) -> str | None:
        """The first of its servers, by which it goes: others may come and go."""
        return self.servers[0].url if self.servers else None

    @property
    def embedded(self) -> bool:
        """Whether this is the model that shows the machinery only."""
        return self.profile.source.embedded is not None


def make_player(engine: EngineName, bundle: Bundle, name: str, role: RoleConfig) -> Player:
    """Who plays the role of that `name`, on `engine` unless a server has it: `role` wins over bundle over profile.

    Raises UserError for a model that cannot be found or cannot speak in this role.
    """
    profile = profile_of(role)
    shipped: Role = getattr(profile.roles, name)
    names = ("temperature", "top_p", "max_tokens", "repetition_penalty")
    told = {n: own for n in names if (own := getattr(role, n, None)) is not None}
    if name in bundle.temperatures:
        told = {"temperature": bundle.temperatures[name]} | told
    draw = Draw(*(told.get(n, getattr(shipped, n)) for n in names))
    host, when_full = (engine if role.url is None else None), getattr(role, "context", Context.STOP)
    max_words = role.max_words if isinstance(role, SimulatorConfig) else MAX_WORDS
    player = Player(profile, role.servers, role.key_env, draw, host, when_full, max_words)
    if name != "judge":
        must_answer_at_once(player, name, "add it")
        must_leave_room(player, name)
    return player


def must_answer_at_once(player: Player, role: str, remedy: str) -> None:
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


def must_leave_room(player: Player, role: str) -> None:
    """UserError where what the role may write fills the context."""
    written, context = player.draw.max_tokens, player.profile.context
    if written >= context:
        raise UserError(f"{role}.max_tokens: {written} leaves no room in the context of {context} tokens; lower it")


def profile_of(role: RoleConfig) -> Profile:
    """The profile of the model that a role names; UserError where it is hosted here and cannot be found."""
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
