"""The tables of a run's roles: who plays each, with which settings. Knows no run and no profile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    field_validator,
)

from vera_local.chatbot import External
from vera_local.engine.server import SEQUENCES, Address
from vera_local.engine.window import Context
from vera_local.plain import plain
from vera_local.run.chatbot_table import KINDS, chatbot_table
from vera_local.simulate import MAX_WORDS


def role_table(value: Any) -> Any:
    """`MODEL`, `MODEL@URL` or `MODEL@URL,URL` as a table."""
    if not isinstance(value, str):
        return value
    model, at, url = value.partition("@http")
    if not model or model.startswith("http") or (not at and "@" in value and not Path(value).exists()):
        raise ValueError("name a model, or write MODEL@http://HOST:PORT/v1 for one that a server offers")
    urls = f"http{url}".split(",")
    return {"model": model, "url": urls[0] if len(urls) == 1 else urls} if at else {"model": value}


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


def _listed(value: Any) -> Any:
    """One of a kind as a list of one."""
    return value if value is None or isinstance(value, list | tuple) else (value,)


def _one_is_no_list(values: tuple[Any, ...] | None) -> Any:
    return values[0] if values and len(values) == 1 else values


def _servers(urls: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Each is a server of its own. Config and manifest are no place for a password."""
    for url in urls or ():
        if not url.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        if "@" in url.split("//", 1)[1].split("/", 1)[0]:
            raise ValueError("must not hold a login; put the key into an environment variable and name that in key_env")
    if urls == ():
        raise ValueError("name at least one server, or leave the key out")
    for place, url in enumerate(urls or ()):
        if url.rstrip("/") in (other.rstrip("/") for other in (urls or ())[:place]):
            raise ValueError(f"{url} is named twice; name each server once")
    return urls


Urls = Annotated[
    tuple[str, ...] | None, BeforeValidator(_listed), AfterValidator(_servers), PlainSerializer(_one_is_no_list)
]

Numbers = Annotated[
    tuple[Annotated[int, BeforeValidator(whole), Field(ge=1)], ...] | None,
    BeforeValidator(_listed),
    PlainSerializer(_one_is_no_list),
]


class RoleConfig(BaseModel):
    """Who plays a role, and what differs from the model's profile.

    `model`: a profile's name, a .toml profile or a model folder. `url`: base URL of an OpenAI-compatible server that
    serves `model`, or several, of which each conversation has one; without it the run's engine hosts the model
    in-process. `key_env`: environment variable with the servers' key. `requests`: how many requests a server is sent at
    once; one number for all, or one for each.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Annotated[str, AfterValidator(plain)] = Field(min_length=1)
    url: Urls = None
    key_env: str | None = None
    requests: Numbers = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    repetition_penalty: float | None = Field(default=None, ge=1, le=2)

    @field_validator("requests")
    @classmethod
    def _for_each_server(cls, requests: tuple[int, ...] | None, known: ValidationInfo) -> tuple[int, ...] | None:
        urls = known.data.get("url") or ()
        if requests is not None and "url" in known.data and len(requests) not in {1, len(urls)}:
            raise ValueError(f"must be one number for all servers, or one for each of the {len(urls)} in url")
        if requests is not None and "url" in known.data and not urls:
            raise ValueError("is for servers only; name them in url, or leave it out")
        return requests

    @property
    def servers(self) -> tuple[Address, ...]:
        """Where its model is served, in the order given; empty where it is hosted in-process."""
        urls, requests = self.url or (), self.requests or (SEQUENCES,)
        return tuple(map(Address, urls, requests if len(requests) > 1 else requests * len(urls)))


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
    requests: None = None
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
