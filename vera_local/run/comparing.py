"""Runs, or the judges of one run, put side by side. Knows no formula, and no way to show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from vera_local.errors import UserError
from vera_local.run.cards import warnings
from vera_local.run.pooling import unique_labels
from vera_local.run.results import Results, other_bundle, other_conditions, other_judges, read_results, refuse
from vera_local.score import Scale
from vera_local.score.changes import Changes, changes
from vera_local.score.compare import Comparison, compare


@dataclass(frozen=True)
class Compared:
    """Chatbots side by side, as one judge rated them."""

    judge: str
    comparison: Comparison


@dataclass(frozen=True)
class RunsCompared:
    """Runs side by side, for each judge that rated all of them.

    `folders` and `chatbots` map the label of a side to its folder and the name of its model. `forced`: the differences
    that were passed over; `notes`: what a reader has to know, in words.
    """

    folders: dict[str, Path]
    chatbots: dict[str, str]
    bundle: str
    judges: tuple[Compared, ...]
    forced: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class PairOfJudges:
    """The second judge against the first, on the conversations that both rated."""

    first: str
    second: str
    changes: Changes
    comparison: Comparison


@dataclass(frozen=True)
class JudgesCompared:
    """Judges of one run, each against the reference. `notes`: what a reader has to know, in words."""

    folder: Path
    bundle: str
    pairs: tuple[PairOfJudges, ...]
    notes: tuple[str, ...] = ()


def compare_runs(folders: Sequence[Path], judges: Sequence[str] = (), *, force: bool = False) -> RunsCompared:
    """Compare each run with the first, by each judge of `judges`, or by those that rated all of the runs.

    UserError where bundles differ, or a judge of one name is not the same, and not `force`.
    """
    results = [read_results(folder) for folder in folders]
    common = _common(results, judges)
    differences = [*other_bundle(results), *other_judges(results, common)]
    refuse(differences, force=force, purpose="compared")
    _must_share_words(results)
    labels = unique_labels([r.folder for r in results])
    if len(set(labels)) < len(labels):
        raise UserError(f"{folders[0]} is named twice; name each run once")
    sides = dict(zip(labels, results, strict=True))
    return RunsCompared(
        folders={label: r.folder for label, r in sides.items()},
        chatbots={label: r.chatbot for label, r in sides.items()},
        bundle=_bundle(results[0]),
        judges=tuple(
            Compared(j, compare({n: r.of_judge(j) for n, r in sides.items()}, _scale(results))) for j in common
        ),
        forced=tuple(differences),
        notes=(*_unlike(results), *(_left_out(results, common) if not judges else ()), *_warned(results)),
    )


def compare_judges(folder: Path, judges: Sequence[str] = ()) -> JudgesCompared:
    """Compare the judges of a run with the first of `judges`, or of all single judges by name.

    UserError where fewer than two judges are there, or one has not rated.
    """
    results = read_results(folder)
    for judge in judges:
        _must_have(results, judge)
    first, *others = judges if len(judges) > 1 else [*judges, *(j for j in _in_order(results) if j not in judges)]
    if not others:
        raise UserError(f"{folder} has one judge ({first}); name a second run, or add a judge with vera-local judge")
    pairs = tuple(_pair(results, first, other) for other in others)
    return JudgesCompared(folder, _bundle(results), pairs, _warned([results]))


def _in_order(results: Results) -> list[str]:
    """Single judges first, then those that stand for several."""
    return sorted(results.judges, key=lambda judge: (judge in results.juries, judge))


def _pair(results: Results, first: str, second: str) -> PairOfJudges:
    one, two = results.of_judge(first), results.of_judge(second)
    shared = set(one["conversation"]) & set(two["conversation"])
    if not shared:
        raise UserError(f"{results.folder}: {first} and {second} have rated no conversation in common")
    one, two = (frame.filter(pl.col("conversation").is_in(list(shared))) for frame in (one, two))
    comparison = compare({first: one, second: two}, results.scale, same_conversations=True)
    return PairOfJudges(first, second, changes(one, two, results.scale), comparison)


def _common(results: Sequence[Results], judges: Sequence[str]) -> list[str]:
    for judge in judges:
        for r in results:
            _must_have(r, judge)
    shared = [j for j in results[0].judges if all(j in r.judges for r in results)]
    if not (judges or shared):
        told = "; ".join(f"{r.folder} by {', '.join(r.judges)}" for r in results)
        raise UserError(f"No judge has rated all of these runs ({told}); judge them by the same one")
    return list(judges) or shared


def _must_have(results: Results, judge: str) -> None:
    if judge not in results.judges:
        raise UserError(
            f"--judge {judge}: {results.folder} has no ratings by it; name one of: {', '.join(results.judges)}"
        )


def _must_share_words(results: Sequence[Results]) -> None:
    words = {(r.scale.ratings, r.scale.not_relevant, r.scale.dimensions) for r in results}
    if len(words) > 1:
        raise UserError("These runs have different ratings or dimensions, so there is no number to set side by side")


def _scale(results: Sequence[Results]) -> Scale:
    """The first's, with the groups that others have besides."""
    groups = dict.fromkeys(group for r in results for group in r.scale.groups)
    return replace(results[0].scale, groups=tuple(groups))


def _unlike(results: Sequence[Results]) -> list[str]:
    return [f"More than the chatbot differs: {told}." for told in other_conditions(results)]


def _left_out(results: Sequence[Results], common: Sequence[str]) -> list[str]:
    others = sorted({j for r in results for j in r.judges} - set(common))
    return [f"Not compared, for they have not rated every run: {', '.join(others)}."] if others else []


def _warned(results: Sequence[Results]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentence for r in results for sentence in warnings(r.cards)))


def _bundle(results: Results) -> str:
    bundle = results.identity["bundle"]
    return f"{bundle['name']} {bundle['version']}"
