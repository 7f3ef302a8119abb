"""What a plan will ask, take and cost, before it runs: an estimate. Opens no engine and loads no model.

Requests and tokens come from a rehearsal on paper; times from a GPU's data sheet, or from what an earlier run recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vera_local.conversation import Conversation
from vera_local.engine.gpus import Gpu
from vera_local.engine.machine import Machine
from vera_local.run.habits import ASSUMED, Habits
from vera_local.run.likeness import Likeness
from vera_local.run.plan import Plan
from vera_local.run.players import Player
from vera_local.run.rehearsal import RulerOf, rehearse
from vera_local.run.roofline import assumptions
from vera_local.run.timing import HOST_LINK, SEQUENCES, Housing, Line, Timing, house

ONE_BY_ONE = "Stages are taken to follow one another; those that go on side by side end sooner."
SIDE_BY_SIDE = "Stages go on side by side for as much of their time as they did in that run."


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage's seconds (None: nobody knows) and whether they are those of an earlier run, scaled."""

    name: str
    seconds: float | None
    measured: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """A plan on `machine`; `untimed`: whose time is in none of the stages. `overlap`: the part of the stages' time,
    added up, that the run takes. `samples`: a conversation as each simulator may hold it."""

    plan: Plan
    machine: Machine
    gpu: Gpu | None
    housing: Housing
    lines: tuple[Line, ...]
    stages: tuple[Stage, ...]
    overlap: float
    untimed: tuple[str, ...]
    assumptions: tuple[str, ...]
    samples: tuple[Conversation, ...]

    @property
    def gpus(self) -> int:
        """How many are used."""
        return len({number for engine in self.housing.engines.values() for number in engine.gpus})

    @property
    def seconds(self) -> float | None:
        """Of all stages; None where one is not known."""
        known = [stage.seconds for stage in self.stages if stage.seconds is not None]
        return sum(known) * self.overlap if len(known) == len(self.stages) else None

    def cost(self, gpu_hour_price: float) -> float | None:
        """In the unit of the price, for all GPUs of the machine, used or not; for the machine where it has none."""
        return None if self.seconds is None else self.seconds / 3600 * max(1, self.machine.gpus) * gpu_hour_price


async def forecast(
    plan: Plan, ruler_of: RulerOf, machine: Machine, gpu: Gpu | None, like: Likeness | None = None
) -> Forecast:
    """For a run on `machine`, whose GPUs are `gpu` (None: nothing is known of its speed), `like` an earlier run.

    Raises UserError where that one was of another bundle.
    """
    if like is not None:
        like.must_suit(plan)
    habits = ASSUMED if like is None else like.habits
    rehearsal = await rehearse(plan, habits, ruler_of)
    parts = rehearsal.parts
    parts = parts if like is None else tuple(map(like.scaled, parts))
    housing = house(plan, machine)
    timing = Timing(plan, housing, gpu, parts)
    lines = tuple(timing.line(part) for part in parts)
    stages = tuple(
        _stage(name, [line for line in lines if line.part.place.stage == name], timing, machine, like)
        for name in dict.fromkeys(part.place.stage for part in parts)
    )
    measured = all(stage.measured for stage in stages)
    return Forecast(
        plan=plan,
        machine=machine,
        gpu=gpu,
        housing=housing,
        lines=lines,
        stages=stages,
        overlap=like.overlap if like is not None and measured else 1.0,
        untimed=tuple(_untimed(lines, stages)),
        assumptions=(
            *_assumptions(plan, habits, ruler_of, gpu, lines, stages, like),
            SIDE_BY_SIDE if like is not None and measured else ONE_BY_ONE,
        ),
        samples=rehearsal.samples,
    )


def _stage(name: str, lines: Sequence[Line], timing: Timing, machine: Machine, like: Likeness | None) -> Stage:
    measured = None if like is None else like.seconds(name, [line.part for line in lines], machine)
    return Stage(name, timing.stage(lines) if measured is None else measured, measured is not None)


def _untimed(lines: Sequence[Line], stages: Sequence[Stage]) -> Iterator[str]:
    """Those that are hosted elsewhere, unless the pace of a whole stage was measured with them."""
    measured = {stage.name for stage in stages if stage.measured}
    for line in lines:
        player = line.part.player
        if (player is None or player.url is not None) and line.part.place.stage not in measured:
            yield line.part.name


def _assumptions(
    plan: Plan,
    habits: Habits,
    ruler_of: RulerOf,
    gpu: Gpu | None,
    lines: Sequence[Line],
    stages: Sequence[Stage],
    like: Likeness | None,
) -> Iterator[str]:
    """All that the figures rest on, one sentence each."""
    players = {line.part.player.profile.name: line.part.player for line in lines if line.part.player is not None}
    yield from habits.told()
    if like is not None:
        yield from like.told()
    yield from _rulers(players, ruler_of)
    yield "What conversations share with those before stays in the KV cache until it is asked for, to the token."
    if plan.config.lookahead != 0:
        yield "Questions asked ahead of the path and then not needed are not counted; they fill room that is free."
    yield f"An engine answers at most {SEQUENCES} requests at once, where its profile does not say max_num_seqs."
    if gpu is not None and not all(stage.measured for stage in stages):
        yield from assumptions(gpu, [player.profile for player in players.values() if player.url is None])
        yield f"An engine goes to sleep and wakes at {HOST_LINK / 1e9:.0f} GB/s, where engines take turns."


def _rulers(players: Mapping[str, Player], ruler_of: RulerOf) -> Iterator[str]:
    for name, player in players.items():
        yield f"{name}: {ruler_of(player).told}."
