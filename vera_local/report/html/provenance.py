"""Where a report comes from, for whoever wants to check it or make it again. Knows no run folder."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vera_local.report.html.text import visible
from vera_local.report.record import Record
from vera_local.toml_file import written

SECRET = frozenset({"system_prompt", "request", "history_item", "extra", "command"})
"""Keys of a manifest that may hold the words of a chatbot's own prompt, or what its program is told: a redacted page
leaves these out."""


@dataclass(frozen=True)
class Fact:
    """A name and what it stands for; `code`: it is to be copied letter by letter."""

    name: str
    value: str
    code: bool = False


@dataclass(frozen=True)
class Provenance:
    """Facts by heading, the commands, and the whole manifest as text."""

    facts: dict[str, tuple[Fact, ...]]
    commands: tuple[str, ...]
    config: str
    manifest: str


def provenance(record: Record, *, redact: bool) -> Provenance:
    """What made the run; `redact`: without the words of a chatbot's own prompt."""
    manifest = _without_secrets(record.manifest) if redact else record.manifest
    found = {
        "Run": tuple(_run(record)),
        "Imported files (sha256)": tuple(_digests(record.manifest["identity"].get("imported", {}))),
        "Files of the bundle (sha256)": tuple(_digests(record.manifest["identity"]["bundle"].get("files", {}))),
        "Versions": tuple(_versions(record.manifest)),
        "Machine": tuple(_machine(record.manifest)),
        "Network": tuple(_network(record.manifest.get("network", {}))),
    }
    text = visible(json.dumps(manifest, indent=2, ensure_ascii=False))
    facts = {name: its for name, its in found.items() if its}
    config = _config_without_secrets(record.config) if redact and record.config else record.config
    return Provenance(facts, tuple(map(visible, record.commands)), visible(config), text)


def _run(record: Record) -> Iterator[Fact]:
    manifest, identity = record.manifest, record.manifest["identity"]
    yield Fact("Run", record.name)
    yield Fact("Made", record.created)
    yield Fact("Fingerprint", str(manifest.get("fingerprint", "")), code=True)
    yield Fact("Bundle", f"{record.instrument.name} {record.instrument.version}")
    for key in ("seed", "turns", "repeats"):
        if key in identity:
            yield Fact(key.capitalize(), str(identity[key]))
    for note in manifest.get("notes", ()):
        yield Fact("Note", visible(str(note)))


def _digests(files: Mapping[str, str]) -> Iterator[Fact]:
    for name, digest in files.items():
        yield Fact(name, digest, code=True)


def _versions(manifest: Mapping[str, Any]) -> Iterator[Fact]:
    for name, version in manifest.get("versions", {}).items():
        yield Fact(name, version)
    if "python" in manifest:
        yield Fact("Python", manifest["python"])


def _machine(manifest: Mapping[str, Any]) -> Iterator[Fact]:
    for name, value in manifest.get("hardware", {}).items():
        if value not in (None, [], ""):
            yield Fact(name.replace("_", " ").capitalize(), value if isinstance(value, str) else json.dumps(value))


def _network(noted: Mapping[str, Any]) -> Iterator[Fact]:
    """What the run could reach and what it tried to reach, in all its starts."""
    if noted:
        yield Fact("Guard", noted["guard"])
        yield Fact("Hosts beyond this machine that it could reach", visible(", ".join(noted["hosts"])) or "none")
        for verdict, times in noted["attempts"].items():
            yield Fact(f"Attempts to reach others that were {verdict}", str(times))


def _without_secrets(part: Any) -> Any:
    """The manifest with the text of prompts replaced by how long it is and its sha256."""
    if isinstance(part, Mapping):
        return {k: _sealed(v) if k in SECRET and v else _without_secrets(v) for k, v in part.items()}
    return [_without_secrets(one) for one in part] if isinstance(part, list | tuple) else part


def _config_without_secrets(toml: str) -> str:
    return written(_without_secrets(tomllib.loads(toml)))


def _sealed(text: Any) -> str:
    text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"left out: {len(text)} characters, sha256 {digest}"
