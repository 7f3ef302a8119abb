"""The stage in which the judges of one engine rate the conversations of a run. Knows no persona and no chatbot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple, Protocol

from vera_local.bundle import Question, Rubric
from vera_local.engine.admission import Admission, Room
from vera_local.engine.replica import ReplicaLost
from vera_local.engine.seam import Engine
from vera_local.judge import Judge, Lookahead, Verdict, judge_conversation, own_part
from vera_local.judge.exhibit import Exhibit
from vera_local.run.checks import TooLong
from vera_local.run.host import Key, key_of
from vera_local.run.ledger import Ledger
from vera_local.run.plan import Plan
from vera_local.run.progress import Meter, Watcher
from vera_local.run.records import Records
from vera_local.run.seats import Seat
from vera_local.run.stage import Held, Job, Stage

STAGE = ROLE = "judge"
"""What judging goes by in the account of what a run used."""


class Cases(Protocol):
    """The conversations that are to be judged, by id, as they come; all that came so far and may yet come, and how many
    of these are to come still."""

    @property
    def size(self) -> int:
        """All of them."""
        ...

    @property
    def to_come(self) -> int:
        """Those that may yet come."""
        ...

    def __aiter__(self) -> AsyncIterator[str]: ...


class Chair(NamedTuple):
    """A judge in a seat on one replica, and what it asks ahead there."""

    judge: Judge
    ahead: Lookahead


@dataclass(frozen=True)
class Bench:
    """The judges of one engine. A conversation is rated from all their seats while its transcript is in the cache.

    `replicas`: for each replica of the engine, its chairs. `known`: seat -> conversations that it rated before.
    """

    plan: Plan
    store: Records
    ledger: Ledger
    seats: Sequence[Seat]
    replicas: Sequence[Sequence[Chair]]
    known: Mapping[str, Container[str]]

    @classmethod
    def of(
        cls, plan: Plan, seats: Sequence[Seat], places: Iterable[tuple[Engine, Room]], store: Records, ledger: Ledger
    ) -> Bench:
        """The bench as the store has it, on these replicas."""

        def chair(seat: Seat, engine: Engine, room: Room) -> Chair:
            judge = make_judge(plan, seat, ledger.metered(engine, STAGE, ROLE, seat.judge, room.requests))
            spare = partial(_spare, engine.limits.ridge, room, own_part(judge, plan.bundle.rubric))
            return Chair(judge, Lookahead(spare, plan.config.lookahead, lambda: room.running))

        replicas = [[chair(seat, engine, room) for seat in seats] for engine, room in places]
        known = {seat.name: store.rated(seat.name) for seat in seats}
        return cls(plan, store, ledger, seats, replicas, known)

    @property
    def rubric(self) -> Rubric:
        return self.plan.bundle.rubric

    @property
    def key(self) -> Key:
        """What the engine goes by."""
        return key_of(self.seats[0].player)

    @property
    def title(self) -> str:
        """What the work is called, beside that of other judges."""
        names = dict.fromkeys(seat.judge for seat in self.seats)
        return "Judging" if len(self.seats) == len(self.plan.judges) else f"Judging by {', '.join(names)}"

    def steps(self, conversations: int) -> int:
        """The most questions that are asked about so many conversations."""
        return conversations * longest_path(self.rubric) * len(self.seats)

    def unrated(self, conversation: str) -> list[int]:
        """The seats that have not rated it, by their places."""
        return [place for place, seat in enumerate(self.seats) if conversation not in self.known[seat.name]]


async def judge_stage(bench: Bench, docket: Cases, admission: Admission[Hashable], watcher: Watcher) -> None:
    """Rate every conversation of the docket from all seats of the bench.

    Raises EngineDied (in an ExceptionGroup); the verdicts given until then are in the store.
    """
    meter = Meter(bench.title, docket.size, bench.steps(docket.size), settled=lambda: docket.to_come == 0)
    lengths = TooLong(watcher.say)
    with watcher.stage(meter) as changed, bench.ledger.stage(STAGE):
        stage = Stage(admission, meter, changed)
        await stage.all(_jobs(bench, docket, stage, lengths))
        lengths.say_all(docket.size)


async def _jobs(bench: Bench, docket: Cases, stage: Stage, lengths: TooLong) -> AsyncIterator[Job]:
    """The conversations as they come, each looked at by its judges before it asks to be let in."""
    async for id in docket:
        _recount(bench, docket, stage)
        conversation, shown, kept = bench.store.conversation(id), dict[int, Exhibit](), 0
        for place in bench.unrated(id):
            judge = bench.replicas[0][place].judge
            shown[place] = await judge.look(conversation, bench.rubric.questions)
            kept = max(kept, judge.engine.limits.kept(await lengths.of(judge, shown[place], bench.rubric)))
        yield Job({bench.key: kept}, partial(_rate, bench, shown, stage))
    # The last to come may have been none to judge.
    _recount(bench, docket, stage)


def _recount(bench: Bench, docket: Cases, stage: Stage) -> None:
    """More may have come, or fewer than was thought."""
    stage.meter.steps += bench.steps(docket.size - stage.meter.jobs)
    stage.meter.jobs = docket.size


async def _rate(bench: Bench, shown: dict[int, Exhibit], stage: Stage, lease: Held) -> None:
    """One conversation from all seats that have not rated it, on the replica that it was let in to."""
    chairs = bench.replicas[lease.replica(bench.key)]
    for place, exhibit in [*shown.items()]:
        await _rate_from(bench, place, chairs[place], exhibit, stage)
        # It need not rate again where the others go on elsewhere.
        del shown[place]


async def _rate_from(bench: Bench, place: int, chair: Chair, shown: Exhibit, stage: Stage) -> None:
    asked, judge = 0, chair.judge

    def record(place_in_path: int, verdict: Verdict) -> None:
        nonlocal asked
        bench.store.add_verdict(shown.conversation, judge.name, place_in_path, verdict)
        asked += 1
        stage.step(verdict.usage)
        bench.ledger.kept(STAGE, ROLE, bench.seats[place].judge, verdict.usage)

    known = bench.store.verdicts(shown.conversation, judge.name)
    try:
        ratings = await judge_conversation(judge, bench.rubric, shown, known, record, chair.ahead)
    except ReplicaLost:
        # They count beside those that are asked where it goes on.
        stage.meter.steps += asked
        raise
    bench.store.set_ratings(shown.conversation, judge.name, ratings)
    stage.meter.steps -= longest_path(bench.rubric) - asked


def _spare(ridge: int, room: Room, tokens: int) -> int:
    """How many more questions of so many tokens the engine could take almost for nothing: up to its ridge, and to what
    its cache still holds."""
    wide = ridge - room.requests.under_way
    return wide if room.free is None else min(wide, room.free // tokens)


def make_judge(plan: Plan, seat: Seat, engine: Engine) -> Judge:
    """The judge of a seat on this engine."""
    prompts, profile = plan.bundle.prompts, seat.player.profile
    short = profile.roles.judge.prompt == "short"
    return Judge(
        name=seat.name,
        engine=engine,
        draw=seat.player.draw,
        prompts=prompts,
        question=prompts.judge_question_short if short else prompts.judge_question,
        seed=plan.config.seed,
        mode=seat.mode,
        thinking=profile.template.thinks,
        evidence=seat.evidence,
        confidence=seat.confidence,
        window=seat.window,
    )


def longest_path(rubric: Rubric) -> int:
    """How many questions a walk asks at most."""

    @cache
    def from_here(question: Question | None) -> int:
        if question is None:
            return 0
        return 1 + max(from_here(rubric.follow(question, option)) for option in question.options)

    return from_here(rubric.questions[0])
