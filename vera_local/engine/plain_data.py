"""Whether a model folder holds data alone: weights without pickles, and no code that would have to be run.

Knows no engine and reads no weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vera_local.engine.json_file import read_object
from vera_local.engine.profile import Profile, Source
from vera_local.errors import UserError

PICKLES = frozenset({".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth"})
"""What PyTorch's own weight files are called; to read one is to run what is in it."""

CODE_FILES = ("config.json", "tokenizer_config.json")
"""Files of a model folder that may name code of the folder as classes to be used, in the key auto_map."""

_confirmed: set[tuple[str, Source]] = set()


def confirm_code(profile: Profile) -> None:
    """Note that a person wants the code of this model to be run, for this process's life."""
    _confirmed.add((profile.name, profile.source))


def check_code(profile: Profile, folder: Path) -> None:
    """UserError where code of the model folder would have to be run, or would be, and no person has confirmed that."""
    if profile.engine.trust_remote_code:
        if (profile.name, profile.source) not in _confirmed:
            raise UserError(
                f"the profile of {profile.name} asks to run Python code out of {folder}, which may do all that you "
                "may: read it, then confirm with --trust-remote-code and the model as the command or config names it"
            )
        return
    named = next((file for file in CODE_FILES if _needs_code(folder / file)), None)
    if named is not None:
        raise UserError(
            f"{folder / named}: the model needs Python code of its own folder (key auto_map), which is not run: choose "
            "a model that the installed libraries know, or set engine.trust_remote_code = true in a .toml profile"
        )


def pickles(folder: Path) -> tuple[str, ...]:
    """The names of weight files that are pickles."""
    return tuple(sorted(path.name for path in folder.iterdir() if path.suffix in PICKLES))


def check_weights(folder: Path, names: Iterable[str]) -> None:
    """UserError where a weight file that an index names is no safetensors file of this very folder."""
    for name in names:
        if Path(name).name != name or "\\" in name:
            raise UserError(f"the model folder {folder} names a weight file outside of it ({name}): do not use it")
        if Path(name).suffix != ".safetensors":
            raise pickled(folder, name)


def pickled(folder: Path, name: str) -> UserError:
    """What to say of weights that are a pickle."""
    return UserError(
        f"the model folder {folder} keeps its weights in {name}, and a file that is no .safetensors can run code when "
        "it is read: take a version of the model with .safetensors files"
    )


def _needs_code(file: Path) -> bool:
    """Whether it names code, and the libraries know no class of their own instead."""
    if not file.is_file():
        return False
    table = read_object(file)
    named = table.get("auto_map")
    if not named:
        return False
    return not (_known_model(table) if file.name == "config.json" else _known_tokenizer(table))


def _known_model(config: Mapping[str, Any]) -> bool:
    # Heavy to import, and not needed for the many folders that name no code.
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return config.get("model_type") in CONFIG_MAPPING_NAMES


def _known_tokenizer(config: Mapping[str, Any]) -> bool:
    import transformers

    return hasattr(transformers, str(config.get("tokenizer_class")))
