"""Runs of one chatbot with different simulators as one set of results. Knows no formula, and no way to show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from vera_local.bundle import Bundle
from vera_local.errors import UserError
from vera_local.report.files import Instrument, write_results
from vera_local.run import manifest
from vera_local.run.cards import warnings
from vera_local.run.folder import locked, prepare_folder
from vera_local.run.identities import POOLED, fingerprint, simulators_of
from vera_local.run.results import (
    Results,
    other_bundle,
    other_chatbot,
    other_judges,
    read_results,
    refuse,
)
from vera_local.score import Grouping, Scale, Scores, score_by_judge


@dataclass(frozen=True)
class Pooled:
    """What came of a pool. `forced`: the differences that were passed over; `notes`: what a reader has to know."""

    folder: Path
    scores: dict[str, Scores]
    sources: tuple[dict[str, Any], ...]
    forced: tuple[str, ...]
    notes: tuple[str, ...] = ()


def pool_runs(
    folders: Sequence[Path], out: Path, bundle: Bundle, by: Mapping[str, Grouping], *, force: bool = False
) -> Pooled:
    """Write the results and scores of several runs together to `out`; a persona of several runs stays one.

    UserError where they differ in bundle, judges or chatbot and not `force`, where a run is named twice, and where
    `out` holds anything else than this pool.
    """
    results = [read_results(folder) for folder in folders]
    _must_be_several(results)
    judges = sorted({judge for r in results for judge in r.judges})
    differences = [*other_bundle(results), *other_chatbot(results), *other_judges(results, judges)]
    refuse(differences, force=force, purpose="pooled")
    labels = unique_labels([r.folder for r in results])
    ratings = pl.concat([_marked(r.ratings, label) for r, label in zip(results, labels, strict=True)])
    questions = pl.concat([_marked(r.questions, label) for r, label in zip(results, labels, strict=True)])
    scores = score_by_judge(ratings, _scale(results), by=by, questions=questions)
    sources = tuple(_source(r, label) for r, label in zip(results, labels, strict=True))
    _enter(out, _manifest(results, sources, differences))
    with locked(out):
        instrument = Instrument(bundle.name, bundle.version, results[0].group_column)
        juries = {name: its for r in reversed(results) for name, its in r.juries.items()}
        cards = {name: its for r in reversed(results) for name, its in r.cards.items()}
        write_results(out, ratings, questions, scores, instrument, juries, cards)
    return Pooled(out, scores, sources, tuple(differences), warnings(cards))


def unique_labels(folders: Sequence[Path]) -> list[str]:
    """A short name for each folder: its own, with those above it where several are called so."""
    names = [folder.resolve().name for folder in folders]
    return [str(f) if names.count(name) > 1 else name for f, name in zip(folders, names, strict=True)]


def _must_be_several(results: Sequence[Results]) -> None:
    if len(results) < 2:
        raise UserError("name two runs or more to pool")
    seen: dict[str, Path] = {}
    for r in results:
        if POOLED in r.identity:
            raise UserError(f"{r.folder} is a pool itself; name the runs that it is of")
        print_ = r.begun["fingerprint"]
        if print_ in seen:
            raise UserError(
                f"{seen[print_]} and {r.folder} are the same run; pool runs of different simulators or seeds"
            )
        seen[print_] = r.folder


def _marked(frame: pl.DataFrame, label: str) -> pl.DataFrame:
    """With the run's name before each conversation's id, for two runs may have the same ids."""
    return frame.with_columns(conversation=pl.concat_str(pl.lit(f"{label}/"), "conversation"))


def _scale(results: Sequence[Results]) -> Scale:
    """The first's, with the groups and dimensions that others have besides."""
    first = results[0].scale
    if any((r.scale.ratings, r.scale.not_relevant) != (first.ratings, first.not_relevant) for r in results):
        raise UserError("These runs use different ratings, which cannot be added up; pool runs of one bundle")
    groups = dict.fromkeys(group for r in results for group in r.scale.groups)
    dimensions = dict.fromkeys(dimension for r in results for dimension in r.scale.dimensions)
    return Scale(first.ratings, first.not_relevant, tuple(dimensions), tuple(groups))


def _source(results: Results, label: str) -> dict[str, Any]:
    identity = results.identity
    kept = {key: identity[key] for key in ("turns", "repeats", "seed") if key in identity}
    return {
        "label": label,
        "folder": str(results.folder.absolute()),
        "fingerprint": results.begun["fingerprint"],
        "simulator": " + ".join(simulators_of(identity)) or None,
        "conversations": results.ratings["conversation"].n_unique(),
        **kept,
    }


def _manifest(results: Sequence[Results], sources: Sequence[dict[str, Any]], forced: Sequence[str]) -> dict[str, Any]:
    first = results[0].begun
    chatbot = {"chatbot": results[0].identity["chatbot"]} if "chatbot" in results[0].identity else {}
    identity = {"bundle": first["identity"]["bundle"], **chatbot, POOLED: [s["fingerprint"] for s in sources]}
    return {
        "schema": manifest.SCHEMA,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "fingerprint": fingerprint(identity),
        "identity": identity,
        "judges": {name: its for r in reversed(results) for name, its in r.begun["judges"].items()},
        "config": {key: first["config"].get(key) for key in ("bundle", "target", "end_semantics")},
        "notice": first["notice"],
        "sources": list(sources),
        "forced": list(forced),
    }


def _enter(out: Path, wanted: Mapping[str, Any]) -> None:
    """Write the manifest of a pool; UserError where the folder holds another pool, or a run."""
    prepare_folder(out)
    old = manifest.read(out)
    if old is not None and old["fingerprint"] != wanted["fingerprint"]:
        raise UserError(f"{out} holds another run or pool; name a new --out")
    manifest.save(out, wanted)
