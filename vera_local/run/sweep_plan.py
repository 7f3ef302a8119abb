"""What a sweep would do: its points, and which models are loaded how often. Opens no engine and writes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from vera_local.engine.seam import Engine
from vera_local.run.host import Opening, key_of
from vera_local.run.stages import placed
from vera_local.run.steps import loadings, steps_of
from vera_local.run.sweep_file import Asked, Point
from vera_local.run.sweep_notes import read_notes
from vera_local.run.wanted import Left, Wanted, left_on_disk


@dataclass(frozen=True)
class Loading:
    """A model that this machine hosts: how often it is loaded, in how many engines at a time."""

    model: str
    times: int
    engines: int


@dataclass(frozen=True)
class Outlook:
    """What a sweep would do now. `left`: its points, each with what is still missing there. `removed`: points that its
    file has no more. `reason`: why the engines share the machine as they do; empty where none is needed."""

    left: tuple[tuple[Point, Left], ...]
    removed: tuple[str, ...]
    loadings: tuple[Loading, ...]
    reason: str


def outlook(asked: Asked) -> Outlook:
    """What is left of a sweep on this machine; UserError where its models cannot work here."""
    before, names = read_notes(asked.out), {point.name for point in asked.points}
    left = tuple((point, left_on_disk(Wanted(point.plan))) for point in asked.points)
    missing = [one for _, one in left if one]
    removed = tuple(name for name in before if name not in names)
    if not missing:
        return Outlook(left, removed, (), "")
    host, grouping = placed(missing, _none)
    residency = host.arrangement.residency
    times = loadings(steps_of(missing, residency, grouping), residency)
    players = {key_of(p): p for one in missing for p in one.players if p.url is None}
    loaded = tuple(Loading(p.profile.name, times[key], host.copies(p)) for key, p in players.items())
    return Outlook(left, removed, loaded, host.arrangement.reason)


async def _none(opening: Opening) -> Engine:
    raise AssertionError("an outlook opens no engine")
