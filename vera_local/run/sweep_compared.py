"""The runs of a sweep side by side, bundle by bundle. Knows no formula, and no way to show it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from vera_local.errors import UserError
from vera_local.run.comparing import RunsCompared, compare_runs
from vera_local.run.pooling import pool_runs
from vera_local.run.sweep_file import Asked, Point
from vera_local.run.sweep_folder import POOLS

LISTED = 40
"""Characters of a list of seeds that a folder's name may have."""


class Comparison(NamedTuple):
    """The chatbots of a sweep on one bundle. `compared`: None where nothing can be compared, of which `why` tells."""

    bundle: str
    compared: RunsCompared | None
    why: str = ""


def compare_points(asked: Asked, done: Iterable[str]) -> list[Comparison]:
    """For each bundle the runs that are `done` side by side, by every judge; the seeds of one chatbot and simulator
    are pooled, and simulators are kept apart. Runs that are not done are told in the notes."""
    bundles: dict[str, list[Point]] = {}
    for point in asked.points:
        bundles.setdefault(point.bundle, []).append(point)
    return [_compared(bundle, asked.out, points, frozenset(done)) for bundle, points in bundles.items()]


def _compared(bundle: str, out: Path, points: Sequence[Point], done: frozenset[str]) -> Comparison:
    sides: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        if point.name in done:
            sides.setdefault((point.chatbot, point.simulator), []).append(point)
    if not sides:
        return Comparison(bundle, None, "no run is done")
    try:
        folders = [_side(out, its) for its in sides.values()]
        if len(folders) > 1:
            compared = compare_runs(folders)
            missing = _missing(point.name for point in points if point.name not in done)
            return Comparison(bundle, replace(compared, notes=(*missing, *compared.notes)))
    except UserError as error:
        return Comparison(bundle, None, str(error))
    return Comparison(
        bundle, None, f"{folders[0]} is alone there; vera-local compare of its runs sets judges side by side"
    )


def _missing(names: Iterable[str]) -> Iterator[str]:
    """What a reader has to know where sides have fewer runs than were asked for, or are not there at all."""
    if told := ", ".join(names):
        yield f"Runs of the sweep that are not done, and missing here: {told}."


def _side(out: Path, points: Sequence[Point]) -> Path:
    """The folder with the results of one chatbot with one simulator: of its run, or of the pool of its seeds."""
    if len(points) == 1:
        return points[0].plan.out
    first = points[0]
    pool = out / POOLS / f"{first.chatbot}--{first.simulator}--{first.bundle}--seeds{_listed([p.seed for p in points])}"
    pool_runs([point.plan.out for point in points], pool, first.plan.bundle, {})
    return pool


def _listed(seeds: Sequence[int]) -> str:
    """The seeds in a folder's name, which is another one for others: a pool is of certain runs."""
    text = "+".join(map(str, sorted(seeds)))
    return text if len(text) <= LISTED else f"{len(seeds)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
