"""What a manifest has to be for its readers to find their way in it. Knows no value's meaning."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError


class _Part(BaseModel):
    """Only what readers rely on is looked at; whatever else is there may stay."""

    model_config = ConfigDict(extra="ignore", strict=True)


class _Bundle(_Part):
    name: str
    version: str
    files: dict[str, str]


class _Player(_Part):
    model: str
    embedded: bool = False
    files: dict[str, str] = {}


class _Identity(_Part):
    bundle: _Bundle
    simulator: _Player | None = None
    simulators: dict[str, _Player] = {}
    chatbot: _Player | None = None
    repeats: int = 1
    imported: dict[str, str] = {}


class _Hardware(_Part):
    device: str = ""
    gpus: int = 0


class _Network(_Part):
    hosts: list[str] = []
    attempts: dict[str, int] = {}


class _Manifest(_Part):
    identity: _Identity
    judges: dict[str, _Player]
    config: dict[str, Any]
    created: str = ""
    fingerprint: str = ""
    python: str = ""
    notes: list[str] = []
    versions: dict[str, str] = {}
    hardware: _Hardware | None = None
    network: _Network | None = None
    purged: dict[str, Any] = {}


def is_whole(manifest: object, pooled: str) -> bool:
    """Whether the parts are there and of their kinds; of a pool, which has `pooled` in its identity, the outer ones."""
    if isinstance(manifest, dict) and isinstance(manifest.get("identity"), dict) and pooled in manifest["identity"]:
        return isinstance(manifest.get("judges"), dict) and isinstance(manifest.get("config"), dict)
    try:
        _Manifest.model_validate(manifest)
    except ValidationError:
        return False
    return True
