"""What a manifest has to be for its readers to find their way in it. Knows no value's meaning."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from vera_local.run.shape import Part, has_shape


class _Bundle(Part):
    name: str
    version: str
    files: dict[str, str]


class _Player(Part):
    model: str
    embedded: bool = False
    files: dict[str, str] = Field(default_factory=dict)


class _Identity(Part):
    bundle: _Bundle
    simulator: _Player | None = None
    simulators: dict[str, _Player] = Field(default_factory=dict)
    chatbot: _Player | None = None
    repeats: int = 1
    imported: dict[str, str] = Field(default_factory=dict)


class _Hardware(Part):
    device: str = ""
    gpus: int = 0


class _Network(Part):
    hosts: list[str] = Field(default_factory=list)
    attempts: dict[str, int] = Field(default_factory=dict)


class _Manifest(Part):
    identity: _Identity
    judges: dict[str, _Player]
    config: dict[str, Any]
    created: str = ""
    fingerprint: str = ""
    python: str = ""
    notes: list[str] = Field(default_factory=list)
    versions: dict[str, str] = Field(default_factory=dict)
    hardware: _Hardware | None = None
    network: _Network | None = None
    purged: dict[str, Any] = Field(default_factory=dict)


def is_whole(manifest: object, pooled: str) -> bool:
    """Whether the parts are there and of their kinds; of a pool, which has `pooled` in its identity, the outer ones."""
    if isinstance(manifest, dict) and isinstance(manifest.get("identity"), dict) and pooled in manifest["identity"]:
        return isinstance(manifest.get("judges"), dict) and isinstance(manifest.get("config"), dict)
    return has_shape(manifest, _Manifest)
