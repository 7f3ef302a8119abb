"""The tables of a run's roles: who plays each, with which settings. Knows no run and no profile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from vera_local.chatbot import External
from vera_local.engine.window import Context
from vera_local.plain import plain
from vera_local.run.chatbot_table import KINDS, chatbot_table
from vera_local.simulate import MAX_WORDS


def role_table(value: Any) -> Any:
    """`MODEL` or `MODEL@URL` as a table."""
    if not isinstance(value, str):
        return value
    model, at, url = value.partition("@http")
    if not model or model.startswith("http") or (not at and "@" in value and not Path(value).exists()):
        raise ValueError("name a model, or write MODEL@http://HOST:PORT/v1 for one that a server offers")
    return {"model": model, "url": "http" + url} if at else {"model": value}


def _several(value: Any) -> Any:
    """One model as a list of one."""
    if value in ([], ()):
        raise ValueError("name at least one model, or leave the key out")
    return [value] if isinstance(value, str | Mapping) else value


def whole(value: Any) -> Any:
    """Neither `true` nor 6.0 is a number of turns."""
    if isinstance(value, bool | float):
        raise ValueError("must be a whole number")
    return value


def _without_login(url: str | None) -> str | None:
    """Config and manifest are no place for a password."""
    if url is not None and "@" in url.split("//", 1)[1].split("/", 1)[0]:
        raise ValueError("must not hold a login; put the key into an environment variable and name that in key_env")
    return url


class RoleConfig(BaseModel):
    """Who plays a role, and what differs from the model's profile.

    `model`: a profile's name, a .toml profile or a model folder. `url`: base URL of an OpenAI-compatible server that
    serves `model`; without it the run's engine hosts the model in-process. `key_env`: environment variable with the
    server's key.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Annotated[str, AfterValidator(plain)] = Field(min_length=1)
    url: Annotated[str | None, AfterValidator(_without_login)] = Field(default=None, pattern=r"^https?://")
    key_env: str | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    repetition_penalty: float | None = Field(default=None, ge=1, le=2)


class SpeakerConfig(RoleConfig):
    """A role that writes messages, of at most `max_tokens`; `context`: what is done when a history outgrows it."""

    max_tokens: int | None = Field(default=None, ge=1)
    context: Context = Context.STOP


class SimulatorConfig(SpeakerConfig):
    """Who plays the personas; `max_words` is the most words that a message of theirs may have."""

    max_words: Annotated[int, BeforeValidator(whole)] = Field(default=MAX_WORDS, ge=1)


class ChatbotConfig(SpeakerConfig):
    """A chatbot that is a model hosted here; `system_prompt` is a text file that replaces the bundle's."""

    kind: Literal["local"] = "local"
    url: None = None
    key_env: None = None
    system_prompt: Path | None = None


class JudgeConfig(RoleConfig):
    """A judge: how it comes to its answers, and how often it judges each conversation.

    `max_tokens` is the budget of its reasoning in the modes `reason` and `think`; an answer takes what its options
    need. `window`: of a transcript that is too long it is shown the first and last turns. `evidence`: it is asked for
    the turns behind an answer; `confidence`: the probabilities of the options are read.
    """

    mode: Literal["direct", "reason", "think"] = "direct"
    max_tokens: Annotated[int | None, BeforeValidator(whole)] = Field(default=None, ge=1)
    repeats: Annotated[int, BeforeValidator(whole)] = Field(default=1, ge=1)
    window: bool = False
    evidence: bool = True
    confidence: bool = True


Simulators = Annotated[tuple[Annotated[SimulatorConfig, BeforeValidator(role_table)], ...], BeforeValidator(_several)]

Chatbot = Annotated[
    ChatbotConfig | External,
    Field(discriminator="kind"),
    BeforeValidator(lambda value: chatbot_table(value, role_table)),
]

Judges = Annotated[tuple[Annotated[JudgeConfig, BeforeValidator(role_table)], ...] | None, BeforeValidator(_several)]

ROLES: dict[str, type[RoleConfig]] = {"simulator": SimulatorConfig, "judge": JudgeConfig}

CHATBOTS: dict[str, type[BaseModel]] = {"local": ChatbotConfig, **KINDS}
"""Kind of a chatbot -> its table."""
