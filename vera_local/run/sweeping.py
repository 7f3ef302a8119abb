"""A whole sweep: its runs as one queue on engines that they share. Prints no table."""

from __future__ import annotations

from dataclasses import dataclass

from vera_local.engine import attempts
from vera_local.run import manifest, network
from vera_local.run.evaluate import ask_servers
from vera_local.run.folder import locked, prepare_folder
from vera_local.run.host import Opener
from vera_local.run.progress import Watcher
from vera_local.run.stages import placed, work_off
from vera_local.run.sweep_desk import SweepDesk
from vera_local.run.sweep_file import Asked
from vera_local.run.sweep_folder import is_own
from vera_local.run.sweep_notes import NAME, Notes, State

OTHER_POINT = (
    "give what was changed another `name`, write another out under [sweep], or ask for the same settings again"
)
"""What to do where a point's folder holds another run than the point is now."""


@dataclass(frozen=True)
class Swept:
    """What became of a sweep: points by name. `failed`: why each could not go on."""

    done: tuple[str, ...]
    failed: dict[str, str]
    removed: tuple[str, ...]


async def sweep(asked: Asked, opener: Opener, watcher: Watcher) -> Swept:
    """Begin the runs of a sweep, or go on with them, until each is simulated, judged and scored, or has failed.

    Raises UserError where a folder holds another run or the engines cannot work here, EngineDied where an engine is
    lost for good, WentBeyond where something was asked for that no config names; what was finished is kept.
    """
    plans = [point.plan for point in asked.points]
    hosts = network.allow(*plans)
    for plan in plans:
        manifest.check(plan, judge=True, remedy=OTHER_POINT)
    prepare_folder(asked.out, NAME, "sweep", is_own)
    before = network.counted(attempts.read(asked.out / network.LOG))
    with locked(asked.out), network.watched(asked.out, watcher.say, before) as tried:
        notes = Notes(asked.out, asked.points)
        notes.save()
        with SweepDesk(asked.points, notes, watcher, hosts, tried) as desk:
            left = [left for plan in plans if (left := desk.left(plan))]
            # Raises where these models cannot work on this machine.
            placed(left, opener)
            await ask_servers([player for one in left for player in one.players], opener)
            await work_off(desk, opener, watcher)
            desk.finish()
    return Swept(tuple(notes.of(State.DONE)), notes.of(State.FAILED), tuple(notes.of(State.REMOVED)))
