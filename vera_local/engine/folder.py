"""What a model folder says of itself: its weight files, its config and its chat template. Knows no engine library."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from vera_local.engine.json_file import read_object
from vera_local.engine.plain_data import check_weights, pickled, pickles
from vera_local.engine.profile import EngineOptions, Profile, PromptedRole, Role, Roles, Source, Template
from vera_local.errors import UserError

ROLE_DEFAULTS = Roles(
    simulator=PromptedRole(temperature=0.8, top_p=0.95, max_tokens=400, prompt="full"),
    chatbot=Role(temperature=0.7, top_p=0.95, max_tokens=800),
    judge=PromptedRole(temperature=0.0, top_p=1.0, max_tokens=400),
)
"""How the roles draw from a model that has no profile of its own; a judge may reason in some sentences."""

THINKING_ROLE_DEFAULTS = Roles(
    simulator=PromptedRole(temperature=0.8, top_p=0.95, max_tokens=2048, prompt="full"),
    chatbot=Role(temperature=0.7, top_p=0.95, max_tokens=2048),
    judge=PromptedRole(temperature=0.0, top_p=1.0, max_tokens=2048),
)
"""The same for a model that always reasons first: its reasoning counts as generated tokens."""

SWITCHED_ROLE_DEFAULTS = ROLE_DEFAULTS.model_copy(update={"judge": THINKING_ROLE_DEFAULTS.judge})
"""The same for a model whose reasoning can be switched on, which only a judge does."""

REASONING_PARSERS = {
    "qwen3": "qwen3",
    "qwen3_moe": "qwen3",
    "gpt_oss": "openai_gptoss",
    "deepseek_v3": "deepseek_r1",
    # Models of these two types that write <think> are distilled from DeepSeek-R1.
    "qwen2": "deepseek_r1",
    "llama": "deepseek_r1",
}
"""model_type in config.json -> the engine's reasoning parser."""

DTYPE_BYTES: dict[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}


def profile_of_folder(folder: Path) -> Profile:
    """A profile made from the files of a model folder. Raises UserError naming the file and key that is missing."""
    folder = folder.absolute()
    config = read_config(folder)
    text = _text(folder, config)
    template = _template(folder, str(config.get("model_type")))
    return Profile(
        name=folder.name,
        title=folder.name,
        licence="not stated in the folder",
        weight_gb=sum(path.stat().st_size for path in weight_files(folder)) / 1e9,
        weight_dtype="quantized" if "quantization_config" in config else _dtype(folder, config),
        kv_bytes_per_token=_kv_bytes(folder, text, DTYPE_BYTES[_dtype(folder, config)]),
        context=_number(folder, text, "max_position_embeddings"),
        source=Source(path=str(folder)),
        engine=EngineOptions(dtype="auto"),
        template=template,
        roles=_roles(template),
    )


def _roles(template: Template) -> Roles:
    match template.thinking:
        case "always":
            return THINKING_ROLE_DEFAULTS
        case "switch":
            return SWITCHED_ROLE_DEFAULTS
        case "none":
            return ROLE_DEFAULTS


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a model folder. Raises UserError where the folder is missing or holds no model."""
    if not folder.is_dir():
        raise UserError(f"there is no model folder {folder}: correct the path")
    if not (folder / "config.json").is_file():
        raise UserError(f"{folder} holds no config.json, so it is no model folder: give the folder that holds it")
    return read_object(folder / "config.json")


def weight_files(folder: Path) -> tuple[Path, ...]:
    """The safetensors files that make up the model: those of the index where there is one, else all.

    Raises UserError where one is missing, as after a download that was broken off, and where one is a pickle.
    """
    index = folder / "model.safetensors.index.json"
    names = sorted(set(_weight_map(index).values())) if index.is_file() else []
    check_weights(folder, names)
    files = [folder / name for name in names] or sorted(folder.glob("*.safetensors"))
    if not files and (others := pickles(folder)):
        raise pickled(folder, others[0])
    missing = [path.name for path in files if not path.is_file()]
    if missing or not files:
        what = missing[0] if missing else "any .safetensors file"
        raise UserError(f"the model folder {folder} lacks {what}: fetch the model again")
    return tuple(files)


def _text(folder: Path, config: dict[str, Any]) -> dict[str, Any]:
    """The settings of the part that writes; models that also see have a table for it."""
    text = config.get("text_config", config)
    if not isinstance(text, dict):
        raise UserError(f"{folder / 'config.json'}: key text_config: it is no table: fetch the model again")
    return text


def _weight_map(index: Path) -> dict[str, str]:
    """Tensor -> the file that holds it."""
    named = read_object(index).get("weight_map")
    if not isinstance(named, dict) or not named or not all(isinstance(name, str) for name in named.values()):
        raise UserError(f"{index}: key weight_map: it names no weight files: fetch the model again")
    return named


def _number(folder: Path, config: dict[str, Any], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or value <= 0:
        raise UserError(
            f"{folder / 'config.json'}: key {key}: no positive number, so write a .toml profile for this model"
        )
    return value


def _dtype(folder: Path, config: dict[str, Any]) -> Literal["bfloat16", "float16", "float32"]:
    # Older files say torch_dtype; files of models that also see keep it beside the text part's settings.
    found = (table.get(key) for table in (config, _text(folder, config)) for key in ("dtype", "torch_dtype"))
    match next((value for value in found if value is not None), None):
        case "bfloat16":
            return "bfloat16"
        case "float16":
            return "float16"
        case "float32":
            return "float32"
        case other:
            raise UserError(
                f"{folder / 'config.json'}: key dtype: {other} is unknown, so write a .toml profile for this model"
            )


def _kv_bytes(folder: Path, config: dict[str, Any], element: int) -> int:
    """Bytes of one token's keys and values, every layer counted as full attention."""
    layers, heads = (_number(folder, config, key) for key in ("num_hidden_layers", "num_attention_heads"))
    kv_heads = _number(folder, config, "num_key_value_heads") if config.get("num_key_value_heads") else heads
    if config.get("head_dim"):
        head = _number(folder, config, "head_dim")
    else:
        # Rounded up: never less than is kept.
        head = -(-_number(folder, config, "hidden_size") // heads)
    return layers * kv_heads * head * 2 * element


def _template(folder: Path, model_type: str) -> Template:
    text = _template_text(folder)
    refuses_system = re.search(r"system role not supported|only user and assistant roles", text, re.IGNORECASE)
    thinking = _thinking(text)
    if thinking != "none" and model_type not in REASONING_PARSERS:
        raise UserError(
            f"{folder}: the model thinks, and no reasoning parser is known for model_type {model_type}: "
            "write a .toml profile that names it"
        )
    return Template(
        system_role=refuses_system is None,
        thinking=thinking,
        thinking_switch="enable_thinking" if thinking == "switch" else None,
        reasoning_parser=None if thinking == "none" else REASONING_PARSERS[model_type],
    )


def _thinking(text: str) -> Literal["none", "switch", "always"]:
    if "enable_thinking" in text:
        return "switch"
    return "always" if "<think>" in text or "<|channel|>" in text else "none"


def _template_text(folder: Path) -> str:
    own = folder / "chat_template.jinja"
    if own.is_file():
        return _read_text(own)
    config = folder / "tokenizer_config.json"
    template = read_object(config).get("chat_template") if config.is_file() else None
    if isinstance(template, list):
        entries = [entry for entry in template if isinstance(entry, dict)]
        template = next((entry.get("template") for entry in entries if entry.get("name") == "default"), None)
    if not isinstance(template, str):
        raise UserError(f"{folder} holds no chat template, so it is no chat model: use its instruction-tuned version")
    return template


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read ({error}): fetch the model again") from None
