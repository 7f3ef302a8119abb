"""Where judge cards are kept, so that later runs find them. Knows nothing of how one comes about."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from vera_local.engine.cache import cache_folder
from vera_local.report.files import write_file
from vera_local.selftest.card import Card
from vera_local.selftest.markdown import page

FOLDER = "judge-cards"


def keep(card: Card, key: str) -> None:
    """Keep a card under `key`, a fingerprint of the judge and the bundle; it replaces an older one."""
    file = _file(key)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, _json(card))


def kept(key: str) -> Card | None:
    """The card under `key`; None where there is none, or one of another version."""
    try:
        return Card.model_validate_json(_file(key).read_bytes())
    except (OSError, ValidationError):
        return None


def write(card: Card, folder: Path) -> None:
    """Write card.json and card.md into a folder that exists."""
    write_file(folder / "card.json", _json(card))
    write_file(folder / "card.md", page(card).encode())


def _json(card: Card) -> bytes:
    return (card.model_dump_json(indent=2) + "\n").encode()


def _file(key: str) -> Path:
    return cache_folder() / FOLDER / f"{key}.json"
