"""From a profile to the folder of the model's files on this machine. Knows no engine, and never uses the network."""

from __future__ import annotations

import os
from pathlib import Path

from vera_local.engine.embedded import convert
from vera_local.engine.folder import read_config, weight_files
from vera_local.engine.plain_data import check_code
from vera_local.engine.profile import Profile
from vera_local.errors import UserError


def locate(profile: Profile) -> Path:
    """The absolute folder of the model's files, converted first where the model is embedded.

    Raises UserError where files are missing, with the command that fetches them, and where they are more than data.
    """
    source = profile.source
    if source.embedded is not None:
        return convert()
    folder = Path(source.path).absolute() if source.path is not None else _snapshot(profile.name, str(source.hub))
    read_config(folder)
    weight_files(folder)
    check_code(profile, folder)
    return folder


def hub_cache() -> Path:
    """The folder in which the Hugging Face tools keep snapshots, found as they find it."""
    if place := os.environ.get("HF_HUB_CACHE"):
        return Path(place).expanduser().absolute()
    if place := os.environ.get("HF_HOME"):
        return Path(place).expanduser().absolute() / "hub"
    shared = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(shared).expanduser().absolute() / "huggingface" / "hub"


def _snapshot(name: str, repo: str) -> Path:
    store = hub_cache() / f"models--{repo.replace('/', '--')}"
    snapshots = sorted(path for path in store.glob("snapshots/*") if path.is_dir())
    main = store / "refs" / "main"
    if main.is_file():
        snapshots = [path for path in snapshots if path.name == main.read_text().strip()]
    match snapshots:
        case [only]:
            return only
        case []:
            raise UserError(_missing(name, repo))
        case _:
            raise UserError(f"{store} holds several snapshots and no refs/main: give the path of one as the model")


def _missing(name: str, repo: str) -> str:
    return (
        f"the files of {name} are not in the hub cache {hub_cache()}: fetch them with `hf download {repo}` "
        "with network access, or give the path of a folder that holds them as the model"
    )
