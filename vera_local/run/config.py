"""What a user asks of a run: a TOML file and flags, checked by one model. Looks nothing up and opens no model."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_serializer

from vera_local.bundle import EndSemantics
from vera_local.chatbot import External
from vera_local.chatbot.settings import Call
from vera_local.engine.window import Context
from vera_local.errors import UserError
from vera_local.run.chatbot_table import KINDS, chatbot_table
from vera_local.simulate import MAX_WORDS

EMBEDDED = "smollm2-135m-instruct"
"""The model that plays a role nobody was named for: it is on every machine, and it shows the machinery only."""

EngineName = Literal["vllm", "transformers"]
"""What hosts models in-process."""


def _role_table(value: Any) -> Any:
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


def _persona_choice(value: Any) -> Any:
    """A number, or names separated by commas."""
    if not isinstance(value, str):
        return _whole(value) if isinstance(value, bool | float) else value
    text = value.strip()
    if text.lstrip("+-").isdigit():
        return int(text)
    if not text:
        raise ValueError("name at least one persona, or give a number")
    return [name.strip() for name in text.split(",")]


def _folder_name(value: Any) -> Any:
    """An empty name would be the folder that one happens to be in."""
    if value == "":
        raise ValueError("name a folder")
    return value


def _whole(value: Any) -> Any:
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

    model: str = Field(min_length=1)
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

    max_words: Annotated[int, BeforeValidator(_whole)] = Field(default=MAX_WORDS, ge=1)


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
    max_tokens: Annotated[int | None, BeforeValidator(_whole)] = Field(default=None, ge=1)
    repeats: Annotated[int, BeforeValidator(_whole)] = Field(default=1, ge=1)
    window: bool = False
    evidence: bool = True
    confidence: bool = True


Simulators = Annotated[tuple[Annotated[SimulatorConfig, BeforeValidator(_role_table)], ...], BeforeValidator(_several)]
Chatbot = Annotated[
    ChatbotConfig | External,
    Field(discriminator="kind"),
    BeforeValidator(lambda value: chatbot_table(value, _role_table)),
]
Judges = Annotated[tuple[Annotated[JudgeConfig, BeforeValidator(_role_table)], ...] | None, BeforeValidator(_several)]
Personas = Annotated[int | list[str] | None, BeforeValidator(_persona_choice)]


class RunConfig(BaseModel):
    """One run. None: as the bundle publishes it, or a demonstration's size where the embedded model plays all roles.

    `simulator`: one or several, of which each plays every persona. `judge`: one or several; without any the embedded
    model judges, where anything is judged at all.
    `engine` hosts every model in-process that has no `url`.
    `controls`: the personas that are controls take part, too. `target` and `end_semantics` are for official VERA-MH
    bundles, as `load_bundle` takes them. `first`: who speaks first. `earliest_end`: the first turn at which a persona
    may leave; None: as far into a conversation as the bundle publishes it. `max_total_words`: a conversation ends when
    both sides together have written so many. `check_personas`: the first judge rates how real the personas are.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    bundle: str = "suicide_risk"
    out: Annotated[Path | None, BeforeValidator(_folder_name)] = None
    personas: Personas = None
    turns: Annotated[int | None, BeforeValidator(_whole)] = Field(default=None, ge=1)
    repeats: Annotated[int, BeforeValidator(_whole)] = Field(default=1, ge=1)
    seed: Annotated[int, BeforeValidator(_whole)] = Field(default=0, ge=0)
    engine: EngineName = "vllm"
    controls: bool = False
    target: str | None = None
    end_semantics: EndSemantics = "fixed"
    first: Literal["persona", "chatbot"] = "persona"
    earliest_end: Annotated[int | None, BeforeValidator(_whole)] = Field(default=None, ge=1)
    max_total_words: Annotated[int | None, BeforeValidator(_whole)] = Field(default=None, ge=1)
    check_personas: bool = False
    simulator: Simulators = (SimulatorConfig(model=EMBEDDED),)
    chatbot: Chatbot = ChatbotConfig(model=EMBEDDED)
    judge: Judges = None

    @field_serializer("simulator")
    def _one_is_no_list(self, simulators: tuple[SimulatorConfig, ...]) -> Any:
        tables = [simulator.model_dump(mode="json") for simulator in simulators]
        return tables[0] if len(tables) == 1 else tables


ROLES: dict[str, type[RoleConfig]] = {"simulator": SimulatorConfig, "judge": JudgeConfig}

CHATBOTS: dict[str, type[BaseModel]] = {"local": ChatbotConfig, **KINDS}
"""Kind of a chatbot -> its table."""

JUDGE_FLAGS = {
    "judge_mode": "mode",
    "judge_repeats": "repeats",
    "judge_window": "window",
    "judge_evidence": "evidence",
    "judge_confidence": "confidence",
}
"""Flags that hold for every judge of the command line -> the key that each sets."""

FLAG_NAMES = {
    "judge_evidence": "--no-evidence",
    "judge_confidence": "--no-confidence",
    "judge_window": "--judge-window",
}
"""Flags that have no value and are not called as their key."""


def load_config(file: Path | None, flags: Mapping[str, Any], stored: Mapping[str, Any] | None = None) -> RunConfig:
    """The config of `file`, or one that a run `stored`, with `flags` over it; a flag that is None was not given.

    Raises UserError naming the file and key, or the flag, that is wrong.
    """
    given = {key: value for key, value in flags.items() if value is not None}
    table = _read(file) if file is not None else dict(stored or {})
    source = "the config of the run" if file is None else str(file)
    try:
        return RunConfig.model_validate(table | _settings(given))
    except ValidationError as error:
        raise UserError(_sentence(error, source, table, given)) from None


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The flags as keys of the config: those for judges go into each judge's table."""
    shared = {key: given[flag] for flag, key in JUDGE_FLAGS.items() if flag in given}
    own = {key: value for key, value in given.items() if key not in JUDGE_FLAGS}
    if not shared:
        return own
    if "judge" not in own:
        flag = next(_flag(name, given) for name in JUDGE_FLAGS if name in given)
        raise UserError(f"{flag}: holds for the judges of the command line; name them with --judge")
    judges = own["judge"] if isinstance(own["judge"], list | tuple) else [own["judge"]]
    return own | {"judge": [_with(judge, shared) for judge in judges]}


def _with(judge: Any, shared: Mapping[str, Any]) -> Any:
    """A judge's table with the shared settings; a text that names none is left for the validation to refuse."""
    try:
        return _role_table(judge) | shared
    except ValueError:
        return judge


def _flag(name: str, given: Mapping[str, Any]) -> str:
    """A flag as it was written."""
    return FLAG_NAMES.get(name) or f"--{name.replace('_', '-')} {given[name]}"


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file}: this is not valid TOML: {error}; correct that line") from None
    except UnicodeDecodeError:
        raise UserError(f"{file}: this is not a text file in UTF-8, which a config has to be") from None
    except OSError as error:
        raise UserError(f"{file}: the config cannot be read ({error.strerror}); correct the path") from None


def _sentence(error: ValidationError, source: str, table: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    found = error.errors(include_url=False)[0]
    loc, known = _place(found["loc"])
    top = str(loc[0]) if loc else ""
    where = _flag_of(loc, given) if top in given else f"{source}: {_key(loc, table)}"
    if found["type"] == "extra_forbidden":
        return f"{where}: unknown key; known ones are {', '.join(known.model_fields)}"
    if found["type"] == "missing":
        return f"{where}: missing, add it"
    return f"{where}: {_told(found)}"


def _place(loc: tuple[int | str, ...]) -> tuple[tuple[int | str, ...], type[BaseModel]]:
    """Where an error is, as a user would write it, and the table that this place is in."""
    if len(loc) < 2:
        return loc, RunConfig
    if loc[0] != "chatbot" or loc[1] not in CHATBOTS:
        return loc, ROLES.get(str(loc[0]), RoleConfig)
    # The kind that pydantic names here is no key.
    place = loc[:1] + loc[2:]
    return place, Call if len(place) > 2 and place[1] in ("start", "end") else CHATBOTS[str(loc[1])]


def _key(loc: tuple[int | str, ...], table: Mapping[str, Any]) -> str:
    """The key of a file, dotted; of several judges or simulators, which one."""
    # The members of a union are named by their type; a user knows no such key.
    parts = [part for part in loc if isinstance(part, str) and part not in ("int", "list[str]")]
    several = table.get(parts[0]) if parts[:1] in (["judge"], ["simulator"]) else None
    place = next((part for part in loc if isinstance(part, int)), None)
    which = f" ({parts[0]} {place + 1} of {len(several)})" if isinstance(several, list) and place is not None else ""
    return f"key {'.'.join(parts)}{which}"


def _flag_of(loc: tuple[int | str, ...], given: Mapping[str, Any]) -> str:
    """The flag that is wrong: that of the role, or one that holds for every judge."""
    shared = next((flag for flag, key in JUDGE_FLAGS.items() if flag in given and key == loc[-1]), None)
    if loc[0] != "judge" or shared is None:
        value, place = given[str(loc[0])], loc[1] if len(loc) > 1 else None
        one = value[place] if isinstance(value, list | tuple) and isinstance(place, int) else value
        inside = loc[1:] if loc[0] == "chatbot" and str(one).endswith(".toml") else ()
        key = f": key {'.'.join(map(str, inside))}" if inside else ""
        return f"--{str(loc[0]).replace('_', '-')} {one}{key}"
    return _flag(shared, given)


def _told(found: Any) -> str:
    bounds = found.get("ctx", {})
    match found["type"]:
        case "greater_than_equal":
            return f"must be at least {bounds['ge']}"
        case "int_parsing" | "int_type" | "int_from_float":
            return "must be a whole number"
        case "literal_error" | "enum":
            return f"must be {bounds['expected']}"
        case "string_pattern_mismatch":
            return "must begin with http:// or https://"
        case "string_too_short":
            return "must not be empty"
        case "bool_parsing" | "bool_type":
            return "must be true or false"
        case "tuple_type":
            return "must be a model's name, a table of settings or a list of these"
        case "model_type" | "model_attributes_type":
            return "must be a model's name or a table of settings"
        case "union_tag_invalid":
            return f"there is no kind {bounds['tag']}; choose one of {bounds['expected_tags']}"
    message: str = found["msg"].removeprefix("Value error, ")
    return f"{message[:1].lower()}{message[1:]}"
