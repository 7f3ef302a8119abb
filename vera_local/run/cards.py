"""Which judge card belongs to which judge of a run. Knows no self-test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vera_local.bundle import Bundle
from vera_local.bundle.source import Source
from vera_local.bundle.suite_file import SELFTEST
from vera_local.run import manifest
from vera_local.run.identities import fingerprint
from vera_local.selftest import Card, kept

APART = frozenset({"judge", "repeat", "window", "evidence", "confidence"})
"""Parts of a judge's identity that change no answer to a short transcript: its name, and what is asked beside."""


def card_key(identity: Mapping[str, Any], bundle: Bundle, selftest: str | None) -> str:
    """What a card is kept under: a fingerprint of a judge, as the manifest describes it, of the bundle's files and of
    its self-test, told by its digest."""
    judge = {key: value for key, value in identity.items() if key not in APART}
    return fingerprint({"judge": judge, "bundle": bundle.digests, "selftest": selftest})


def _selftest(bundle: Bundle) -> str | None:
    """The digest of a bundle's self-test as it is now; None where it has none."""
    file = None if bundle.folder is None else bundle.folder / SELFTEST
    return Source.read(file).digest if file is not None and file.is_file() else None


def cards_of(folder: Path, bundle: Bundle) -> dict[str, Card | None]:
    """Judge of the run in `folder` -> its card; None where no self-test of it is on record."""
    entered = manifest.read(folder)
    assert entered is not None
    identities = {its.get("judge", name): its for name, its in entered["judges"].items()}
    selftest = _selftest(bundle)
    return {judge: kept(card_key(its, bundle, selftest)) for judge, its in identities.items()}


def facts(card: Card | None) -> dict[str, Any] | None:
    """What results state of a card; None where there is none."""
    if card is None:
        return None
    return {
        "accuracy": card.overall.accuracy,
        "baseline": card.overall.baseline,
        "n": card.overall.n,
        "below_baseline": card.below_baseline,
        "attack_flips": {"n": card.attacked.n, "count": card.attacked.count},
        "created": card.created,
    }


def warnings(cards: Mapping[str, Mapping[str, Any] | None]) -> tuple[str, ...]:
    """A sentence for each judge that its self-test found no better than a constant one; `cards` as results state them.

    Whatever shows a judge's ratings shows these.
    """
    return tuple(
        f"Do not rely on {judge}: in its self-test it was right {card['accuracy']:.0%} of the time, "
        f"and a constant judge, which never reads the transcript, {card['baseline']:.0%}."
        for judge, card in sorted(cards.items())
        if card is not None and card["below_baseline"]
    )
