"""What a sweep's file asks for: points, each a run of its own. Opens no model and writes nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from vera_local.bundle import Bundle, load_bundle
from vera_local.errors import UserError
from vera_local.run.complaints import complaint
from vera_local.run.config import RunConfig
from vera_local.run.plan import Plan, make_plan
from vera_local.run.players import Player
from vera_local.run.sweep_axes import Axes, Value, axes_of
from vera_local.toml_file import read_toml

LONGEST = 200
"""Bytes of a point's name: a file system takes 255, and a pool's name is longer."""

SCRIPTED = "scripted"
"""In the place of a simulator's name where the personas say their openings and nothing more."""


class Point(NamedTuple):
    """One run of a sweep, and what its chatbot, simulator and bundle are called in the names of folders."""

    name: str
    chatbot: str
    simulator: str
    bundle: str
    seed: int
    plan: Plan


class Asked(NamedTuple):
    """A sweep as its file has it."""

    file: Path
    out: Path
    points: tuple[Point, ...]


def read_sweep(file: Path) -> Asked:
    """The sweep of a file; UserError naming the file, and the key or point that is wrong."""
    axes = axes_of(file, read_toml(file, "sweep"))
    points = tuple(_points(file, axes))
    for name, times in Counter(point.name.casefold() for point in points).items():
        if times > 1:
            raise UserError(
                f"{file}: {times} points are called {name}; name each value of an axis once, and give a chatbot or "
                "simulator that is there with several settings a `name` for each"
            )
    return Asked(file, axes.out, points)


def _points(file: Path, axes: Axes) -> Iterator[Point]:
    bundles: dict[Hashable, Bundle] = {}
    for place in product(axes.chatbots, axes.simulators, axes.bundles, axes.seeds):
        config = _config(file, axes, place)
        which, (chatbot, simulator, *_) = (config.bundle, config.target, config.end_semantics), place
        try:
            if which not in bundles:
                bundles[which] = _loaded(config)
            point = _point(axes.out, make_plan(config, bundles[which]), chatbot, simulator)
        except UserError as error:
            raise UserError(f"{file}: with {', '.join(value.where for value in place[:-1])}: {error}") from None
        # Without a simulator a run is the same whichever stands on the axis.
        if point.simulator != SCRIPTED or simulator is axes.simulators[0]:
            yield point


def _config(file: Path, axes: Axes, place: Iterable[Value]) -> RunConfig:
    own = {key: (setting, value) for value in place for key, setting in value.settings.items()}
    table = {**axes.same, **{key: setting for key, (setting, _) in own.items()}}
    try:
        return RunConfig.model_validate(table if axes.judges is None else table | {"judge": axes.judges})
    except ValidationError as error:
        key = str(error.errors(include_url=False)[0]["loc"][0])
        where = own[key][1].where if key in own else key
        which = f" ({where})" if where != key else ""
        raise UserError(f"{complaint(error, str(file), table | {'judge': axes.judges}, {})}{which}") from None


def _loaded(config: RunConfig) -> Bundle:
    """The bundle of a config, which has the personas that are asked for."""
    bundle = load_bundle(config.bundle, config.target, config.end_semantics)
    try:
        if config.personas is not None:
            bundle.choose(config.personas, controls=config.controls)
    except UserError as error:
        raise UserError(f"key personas (bundle {bundle.name}): {error}") from None
    return bundle


def _point(out: Path, plan: Plan, chatbot: Value, simulator: Value) -> Point:
    """The point of a plan, whose run gets a folder of its own."""
    one = plan.chatbot.profile.name if isinstance(plan.chatbot, Player) else plan.chatbot.title
    other = plan.simulators[0].profile.name if plan.simulators else SCRIPTED
    who, persona = _slug(chatbot.name or one), _slug(simulator.name or other) if plan.simulators else SCRIPTED
    bundle, seed = _slug(plan.bundle.name), plan.config.seed
    name = f"{who}--{persona}--{bundle}--seed{seed}"
    if len(name) > LONGEST:
        raise UserError(f"{name} is too long for a folder; give the chatbot and the simulator a shorter `name`")
    folder = out / name
    placed = replace(plan, out=folder, config=plan.config.model_copy(update={"out": folder}))
    return Point(name, who, persona, bundle, seed, placed)


def _slug(text: str) -> str:
    """A name as a part of a folder's; two hyphens stand between parts alone."""
    plain = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9._-]+", "-", text)).strip("-.")
    if not plain:
        raise UserError(f"'{text}' has no letter or digit that a folder's name could keep; give it another `name`")
    return plain
