"""Whether a machine of a cluster can take part in a run: what it has, beside what the driver has. Knows no Ray."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vera_local.engine.digest import model_digests
from vera_local.engine.machine import VISIBLE, Machine, this_machine
from vera_local.engine.placement import Residency, arrange
from vera_local.engine.profile import Profile
from vera_local.engine.source import locate
from vera_local.errors import UserError
from vera_local.run.identities import ENGINE_PACKAGES, versions
from vera_local.run.needs import needs_of
from vera_local.run.plan import Plan
from vera_local.run.players import Player


@dataclass(frozen=True, slots=True)
class Look:
    """What a machine has: versions of what asks and computes, its GPUs, and of each model the digests of its files, or
    in one sentence why they are not there."""

    versions: Mapping[str, str]
    machine: Machine
    models: Mapping[str, Mapping[str, str] | str]


def look(profiles: Iterable[Profile]) -> Look:
    """Look at this machine, with all of its GPUs, and at the files that it has of these models."""
    # A process that was given no GPU would see none.
    given = os.environ.pop(VISIBLE, None)
    try:
        machine = this_machine()
    finally:
        if given is not None:
            os.environ[VISIBLE] = given
    return Look(_versions(), machine, {profile.name: _files(profile) for profile in profiles})


def must_match(name: str, here: Look, there: Look) -> None:
    """UserError, naming the machine, where it cannot take part."""
    for package, version in here.versions.items():
        if there.versions.get(package) != version:
            other = there.versions.get(package, "none")
            raise UserError(f"{name} has {package} {other} and this machine {version}; install the same on all")
    for model, files in here.models.items():
        its = there.models[model]
        if isinstance(its, str):
            raise UserError(f"{name} lacks a model: {its}")
        if isinstance(files, str):
            raise UserError(files)
        for file in sorted(files.keys() | its.keys()):
            if files.get(file) != its.get(file):
                raise UserError(
                    f"{name} has another {file} of {model} than this machine; bring the same files to both "
                    f"(`vera-local models verify {model}` tells their digests)"
                )


def hosted(plan: Plan, *, simulate: bool, judge: bool) -> tuple[Player, ...]:
    """The models that workers host where they hold the plan's conversations, judge them or both, each once."""
    players = (*(plan.speakers if simulate else ()), *(seat.player for seat in plan.judges if judge))
    return tuple({p.profile.name: p for p in players if p.url is None}.values())


def labels_of(players: Iterable[Player]) -> dict[str, str]:
    """What the profiles of these models ask of a machine; UserError where two ask for different things."""
    found: dict[str, tuple[str, str]] = {}
    for profile in (player.profile for player in players):
        for key, value in profile.node_labels.items():
            other, by = found.setdefault(key, (value, profile.name))
            if other != value:
                raise UserError(
                    f"{by} asks for machines with {key}={other} and {profile.name} for {key}={value}, and a worker "
                    "hosts all models of a run; give both profiles the same node_labels"
                )
    return {key: value for key, (value, _) in found.items()}


def gpus_each(plan: Plan, machines: Iterable[Machine], *, simulate: bool, judge: bool) -> int:
    """The fewest GPUs on which one worker can keep all models awake that it hosts; where no machine has enough for
    that, the fewest on which they can take turns. 0 where no machine has one."""
    with_gpus = [machine for machine in machines if machine.device == "cuda"]
    if not with_gpus or not hosted(plan, simulate=simulate, judge=judge):
        return 0
    needs = [need for of_one in needs_of(plan, simulate=simulate, judge=judge).values() for need in of_one]
    least = max(need.gpus_each * need.replicas for need in needs)
    largest = max(with_gpus, key=lambda machine: machine.gpus)
    for gpus in range(least, largest.gpus + 1):
        part = Machine("cuda", largest.name, min(machine.memory_bytes for machine in with_gpus), gpus)
        if arrange(needs, part).residency is Residency.TOGETHER:
            return gpus
    return least


def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | versions(ENGINE_PACKAGES)


def _files(profile: Profile) -> dict[str, str] | str:
    try:
        return model_digests(locate(profile))
    except UserError as error:
        return str(error)
