"""What a user may say of a chatbot that is no model of ours: a table per kind. Knows how to check it, not to use it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from vera_local.chatbot.keyring import NAMED, names_key, names_secret
from vera_local.chatbot.template import must_fit, parsed, places
from vera_local.plain import plain

REPLY_PLACES = frozenset({"message", "session", "history", "earlier", "turn", "message_id", "seed"})
"""What a request for a reply may hold, in braces."""

CALL_PLACES = frozenset({"session"})
"""The same for the calls that begin and end a conversation."""

ITEM_PLACES = frozenset({"role", "text"})
"""The same for each message of {history} and {earlier}."""


def _whole(value: Any) -> Any:
    if isinstance(value, bool | float):
        raise ValueError("must be a whole number")
    return value


def without_key(url: str) -> str:
    """A URL that holds neither a login nor a key: config and manifest are no place for them."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("must not hold a login; put the key into an environment variable and name that")
    for name, value in parse_qsl(parts.query):
        if names_secret(name) and not NAMED.search(value):
            raise ValueError(f"must not hold a key; put {name} into an environment variable and write env:VARIABLE")
    return url


def _headers_without_key(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not all(text.isascii() and text.isprintable() for text in (name, value)):
            raise ValueError(f"{name} holds characters that no header may hold")
        if names_secret(name) and not NAMED.search(value):
            raise ValueError(f"must not hold a key; put {name} into an environment variable and write env:VARIABLE")
    return headers


def _without_literal_key(value: Any) -> Any:
    """A request's JSON in which every key is a variable's, or a place that is filled."""
    match value:
        case dict():
            for name, inner in value.items():
                literal = isinstance(inner, str) and inner and not NAMED.fullmatch(inner) and not places(inner)
                if literal and names_key(str(name)):
                    raise ValueError(
                        f"must not hold a key; put {name} into an environment variable and write env:VARIABLE"
                    )
                _without_literal_key(inner)
        case list():
            for inner in value:
                _without_literal_key(inner)
    return value


def _command_without_key(command: tuple[str, ...]) -> tuple[str, ...]:
    for word, following in zip(command, (*command[1:], ""), strict=True):
        name, equals, value = word.partition("=")
        literal = value if equals else following if name.startswith("--") else ""
        if names_key(name) and literal and not literal.startswith("-"):
            raise ValueError(f"must not hold a key; let the program read {name} from an environment variable")
    return command


Whole = Annotated[int, BeforeValidator(_whole)]
Url = Annotated[str, Field(pattern=r"^https?://[^/]"), AfterValidator(without_key)]
Headers = Annotated[dict[str, str], AfterValidator(_headers_without_key)]
Json = Annotated[Any, BeforeValidator(parsed), AfterValidator(_without_literal_key)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Named(_Table):
    """`name`: what the chatbot is called in results; without one, what tells it apart."""

    name: Annotated[str, AfterValidator(plain)] | None = Field(default=None, min_length=1)

    @property
    def title(self) -> str:
        """The chatbot's name."""
        return self.name or self.default_name

    @property
    def default_name(self) -> str:
        """What to call it where the user does not say."""
        # No abstract method: `Manners` is made by itself, too, where nothing is named.
        raise NotImplementedError


class Manners(Named):
    """How a chatbot is treated. Times are in seconds; none of this decides what the chatbot is asked.

    `concurrency`: requests at once (for one process per conversation: processes). `timeout`: from a request to the end
    of its reply. `retries`: further tries of one request after a fault, the first after about `backoff`, each later one
    after twice as long; a service that asks for a wait gets it, but one longer than `longest_wait` counts as a failure.
    `reply_limit` is in bytes. `empty_retries`: further tries where a reply is empty. `give_up_after`: conversations
    that fail in a row before the run stops.
    """

    concurrency: Whole = Field(default=8, ge=1)
    requests_per_minute: float | None = Field(default=None, gt=0)
    connect_timeout: float = Field(default=5.0, gt=0)
    timeout: float = Field(default=300.0, gt=0)
    retries: Whole = Field(default=4, ge=0)
    backoff: float = Field(default=0.5, ge=0)
    longest_wait: float = Field(default=300.0, ge=0)
    reply_limit: Whole = Field(default=1_000_000, ge=1)
    empty_retries: Whole = Field(default=0, ge=0)
    give_up_after: Whole = Field(default=10, ge=1)


class OpenAISettings(Manners):
    """Chat completions of any server that offers them; what is not set is left to the server.

    `url`: base URL, usually ending in /v1. `key_env`: environment variable with the key. `extra`: further keys of each
    request, where a text "env:NAME" stands for that variable's value. `send_seed`: whether each request carries its
    seed. `repetition_penalty` is known to vLLM's server alone.
    """

    kind: Literal["openai"] = "openai"
    model: str = Field(min_length=1)
    url: Url
    key_env: str | None = Field(default=None, min_length=1)
    system_prompt: Path | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    repetition_penalty: float | None = Field(default=None, ge=1, le=2)
    max_tokens: Annotated[int | None, BeforeValidator(_whole)] = Field(default=None, ge=1)
    send_seed: bool = True
    stream: bool = False
    extra: Annotated[dict[str, Any], AfterValidator(_without_literal_key)] = {}

    @property
    def default_name(self) -> str:
        return self.model


def _is_flat(request: Any) -> bool:
    """Whether it fits the parameters of a URL."""
    if request is None:
        return True
    lists = places(request) & {"history", "earlier"}
    return isinstance(request, dict) and not lists and not any(isinstance(v, dict | list) for v in request.values())


class Call(_Table):
    """One request of a service. `request`: JSON, as a table or as text, with places such as "{session}".

    A request without a body (GET, HEAD, DELETE) carries it as parameters of its URL.
    """

    url: Url
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    headers: Headers = {}
    request: Json = None
    session: str | None = Field(default=None, min_length=1)

    @field_validator("request")
    @classmethod
    def _places_are_known(cls, request: Any) -> Any:
        must_fit(request, cls.known_places())
        return request

    @classmethod
    def known_places(cls) -> frozenset[str]:
        """What `request` may hold, in braces."""
        return CALL_PLACES

    @model_validator(mode="after")
    def _parameters_are_a_table(self) -> Call:
        if self.method in ("GET", "DELETE") and not _is_flat(self.request):
            raise ValueError(f"a {self.method} request has parameters; write request as a table of single values")
        return self


class HttpSettings(Call, Manners):
    """Any service that answers in JSON.

    `reply`: dotted path to the text in what comes back, such as "choices.0.text". `session`: path to the id by which
    the service knows the conversation, in the answer to `start` or, without one, in the first reply; left out, we make
    an id. `history_item`, `user_role`, `chatbot_role`: the messages of {history}.
    """

    kind: Literal["http"] = "http"
    reply: str = Field(min_length=1)
    start: Call | None = None
    end: Call | None = None
    history_item: Json = {"role": "{role}", "content": "{text}"}
    user_role: str = "user"
    chatbot_role: str = "assistant"

    @classmethod
    def known_places(cls) -> frozenset[str]:
        return REPLY_PLACES

    @field_validator("history_item")
    @classmethod
    def _item_places_are_known(cls, item: Any) -> Any:
        must_fit(item, ITEM_PLACES)
        return item

    @model_validator(mode="after")
    def _the_message_is_sent(self) -> HttpSettings:
        if not places(self.request) & {"message", "history"}:
            raise ValueError('request has to hold "{message}" or "{history}", or the service would not hear the user')
        return self

    @property
    def default_name(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def sends_history(self) -> bool:
        """Whether every request tells all that was said, so that the service need not remember it."""
        return bool(places(self.request) & {"history", "earlier"})


def _module_and_name(factory: str) -> str:
    if not re.fullmatch(r"[\w.]+:[\w.]+", factory):
        raise ValueError("write package.module:name, the module and what to call in it")
    return factory


class PythonSettings(Manners):
    """A chatbot in Python: `factory` is "package.module:name", called once per conversation.

    `remembers`: whether what it gives keeps the conversation itself; false where it answers from the history alone.
    `hosts`: names or addresses beyond this machine that its code has to reach; all others are refused to it.
    """

    kind: Literal["python"] = "python"
    hosts: tuple[Annotated[str, Field(pattern=r"^[^\s/@]+$")], ...] = ()
    factory: Annotated[str, AfterValidator(_module_and_name)]
    remembers: bool = True

    @property
    def default_name(self) -> str:
        return self.factory


def _words(command: Any) -> Any:
    """A command line as the words of a shell."""
    return shlex.split(command) if isinstance(command, str) else command


class CommandSettings(Manners):
    """A program that speaks JSON lines. `shared`: one process for all conversations, instead of one for each.

    `remembers`: whether it keeps the conversation itself; false where it answers from the history alone.
    """

    kind: Literal["command"] = "command"
    command: Annotated[tuple[str, ...], BeforeValidator(_words), AfterValidator(_command_without_key)] = Field(
        min_length=1
    )
    shared: bool = False
    remembers: bool = True

    @property
    def default_name(self) -> str:
        return " ".join(Path(word).name for word in self.command[:2])


class RecordedSettings(Named):
    """Replies that were recorded: `path` is a folder of .txt files, or one .txt, .jsonl or .csv file."""

    kind: Literal["recorded"] = "recorded"
    path: Path

    @property
    def default_name(self) -> str:
        return f"recorded in {self.path.name}"


External = OpenAISettings | HttpSettings | PythonSettings | CommandSettings | RecordedSettings
"""A chatbot that is no model hosted by us."""
