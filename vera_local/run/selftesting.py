"""A self-test from plan to card: opens the judge, asks, counts and keeps the card. Knows no run folder."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import vera_local
from vera_local.bundle import Suite, suite_of
from vera_local.engine.admission import Admission, Room
from vera_local.engine.seam import Engine
from vera_local.errors import UserError
from vera_local.judge import Mode, Verdict
from vera_local.run import network
from vera_local.run.cards import card_key
from vera_local.run.checks import check_judges
from vera_local.run.failure import cause
from vera_local.run.host import Host, Opener, start
from vera_local.run.identities import fingerprint, judge_identity
from vera_local.run.judging import make_judge
from vera_local.run.needs import needs_of
from vera_local.run.plan import Plan
from vera_local.run.progress import Meter, Watcher
from vera_local.run.seats import Seat
from vera_local.selftest import Answered, Card, Instrument, Sitting, keep, marks, perform, sittings, write

LOG = "engine.log"


def selftest_folder(plan: Plan) -> Path:
    """Where the card of the plan's judge goes unless the user says otherwise."""
    name = f"{plan.judges[0].judge}-{plan.bundle.name}"
    return Path("selftest") / re.sub(r"[^\w.-]+", "_", name)


def default_repeats(seat: Seat) -> int:
    """How often each question is asked: at temperature 0 answers differ by the engine's rounding alone."""
    return 3 if seat.player.draw.temperature > 0 or seat.mode is not Mode.DIRECT else 2


async def selftest(
    plan: Plan, folder: Path, repeats: int | None, opener: Callable[[Path], Opener], watcher: Watcher
) -> Card:
    """Try the plan's first judge on its bundle's self-test; the card goes to `folder` and is kept for later runs.

    `opener` opens engines that print to a log, which lies in `folder`, too. `repeats` None: as `default_repeats`.
    Raises UserError where the bundle has no self-test or the judge cannot be used, EngineDied where it is lost.
    """
    suite, seat = suite_of(plan.bundle), plan.judges[0]
    identity = judge_identity(seat)
    repeats = default_repeats(seat) if repeats is None else repeats
    _prepare(folder)
    network.allow(plan)
    with network.judged(folder, watcher.say):
        asked = sittings(plan.bundle.rubric, suite, repeats)
        answers = await _answers(plan, seat, asked, opener(folder / LOG), watcher)
    card = _card(plan, seat, suite, repeats, fingerprint(identity), answers)
    write(card, folder)
    keep(card, card_key(identity, plan.bundle, suite.digest))
    return card


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot write there ({error.strerror}); name another --out") from None


async def _answers(
    plan: Plan, seat: Seat, planned: tuple[Sitting, ...], opener: Opener, watcher: Watcher
) -> tuple[Answered, ...]:
    one = replace(plan, judges=(seat,))
    try:
        async with Host(opener, needs_of(one, simulate=False, judge=True), watcher.say) as host:
            await start(host, watcher, seat.player)
            engine = host.engine(seat.player)
            await check_judges(engine, [seat], watcher.say)
            return await _asked(plan, seat, engine, planned, watcher)
    except ExceptionGroup as group:
        raise cause(group) from group


async def _asked(
    plan: Plan, seat: Seat, engine: Engine, planned: tuple[Sitting, ...], watcher: Watcher
) -> tuple[Answered, ...]:
    """All answers, shown as they come."""
    meter = Meter("Self-test", len(planned), sum(len(sitting.askings) for sitting in planned))
    admission = Admission({seat.name: [Room.of(engine.limits)]})
    with watcher.stage(meter) as changed:

        def record(verdict: Verdict) -> None:
            meter.steps_done += 1
            meter.usage += verdict.usage
            changed()

        @asynccontextmanager
        async def room(tokens: int) -> AsyncIterator[None]:
            async with admission.hold({seat.name: tokens}):
                meter.in_flight += 1
                yield
                meter.in_flight -= 1
                meter.jobs_done += 1

        return await perform(make_judge(plan, seat, engine), planned, room, record)


def _card(plan: Plan, seat: Seat, suite: Suite, repeats: int, identity: str, answers: tuple[Answered, ...]) -> Card:
    bundle = plan.bundle
    return Card(
        judge=seat.judge,
        title=seat.player.profile.title,
        mode=seat.mode.value,
        temperature=seat.player.draw.temperature,
        repeats=repeats,
        identity=identity,
        bundle=Instrument(name=bundle.name, version=bundle.version, digests=bundle.digests, selftest=suite.digest),
        vera_local=vera_local.__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        **marks(answers),
    )
