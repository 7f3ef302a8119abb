"""Which models a run used, and what their files were. Knows no model and opens none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vera_local.engine.profile import Profile, find_profile
from vera_local.errors import UserError
from vera_local.run.evaluate import must_hold_run
from vera_local.run.identities import simulator_facts


def files_of_run(folder: Path) -> dict[str, dict[str, str]]:
    """Model -> file name -> sha256 of each model that was hosted here; UserError where the folder holds no run."""
    manifest = must_hold_run(folder)
    identity = manifest["identity"]
    facts = [*simulator_facts(identity), identity.get("chatbot", {}), *manifest["judges"].values()]
    return {its["model"]: dict(its["files"]) for its in facts if "files" in its}


def profile_in_run(folder: Path, name: str) -> Profile:
    """The profile of that name as the run found it; UserError where its files or its profile are not here any more."""
    for model in _named(must_hold_run(folder)["config"]):
        try:
            profile = find_profile(model)
        except UserError:
            continue
        if profile.name == name:
            return profile
    return find_profile(name)


def _named(config: Mapping[str, Any]) -> Iterator[str]:
    """What the run's config calls the models that were hosted here."""
    roles = [config.get(key) for key in ("simulator", "chatbot", "judge")]
    tables = [table for role in roles for table in (role if isinstance(role, list) else [role]) if table]
    yield from (table["model"] for table in tables if table.get("model") and not table.get("url"))
