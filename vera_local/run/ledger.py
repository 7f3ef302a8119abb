"""What one process does for a run, entered into the run's store while it goes on. Knows no conversation or verdict."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from vera_local.engine.metered import Busy, Clock, Metered, Tally
from vera_local.engine.seam import NO_USAGE, Engine, Usage
from vera_local.errors import UserError
from vera_local.report.usage import SessionRow, StageRow, UsageRow
from vera_local.run.memory import Peak
from vera_local.run.records import Records
from vera_local.run.store import Store

SECONDS = 10.0
"""Pause between two entries while a stage goes on: what a kill can lose of the counts."""

Place = tuple[str, str, str]
"""Stage, role, model."""


class Ledger:
    """Counts from when it is entered (`with`) to when it is left, as one session of the run that `store` holds.

    It raises the store's UserError where the disk is full; leaving it after a failure keeps that failure.
    """

    def __init__(self, store: Records, clock: Clock = time.monotonic, peak: Peak | None = None) -> None:
        self._used = store.used
        self._clock = clock
        self._peak = Peak.here() if peak is None else peak
        self._wall, self._busy = Busy(clock), Busy(clock)
        self._stages: dict[str, tuple[Busy, Busy]] = {}
        self._tallies: dict[Place, Tally] = {}
        self._kept: dict[Place, Usage] = {}
        self._saved = clock()
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._session = 0
        self._restarts = 0

    def __enter__(self) -> Self:
        self._session = self._used.begin(self._started)
        self._wall.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wall.leave()
        with suppress(*(() if kind is None else (UserError,))):
            self.save()

    def metered(self, engine: Engine, stage: str, role: str, model: str, *also: Busy) -> Engine:
        """The engine with its requests counted there, and under way on the clocks `also`; several engines of one model
        may be counted together."""
        return Metered(engine, self._tally((stage, role, model)), also)

    def kept(self, stage: str, role: str, model: str, usage: Usage) -> None:
        """What something cost that went into the store; the rest of what was asked is waste."""
        place = stage, role, model
        self._tally(place)
        self._kept[place] = self._kept.get(place, NO_USAGE) + usage
        self.touch()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage; several may go on at the same time, and one may go on several times."""
        wall, _ = self._clocks(name)
        wall.enter()
        try:
            with self._peak.watched():
                yield
        except BaseException:
            self._end(name)
            with suppress(UserError):
                self.save()
            raise
        self._end(name)
        self.save()

    def restarted(self) -> None:
        """An engine was lost, and all are opened anew."""
        self._restarts += 1
        self.save()

    @property
    def session(self) -> int:
        """Its number in the store."""
        return self._session

    @property
    def pulse(self) -> tuple[int, int]:
        """Requests to engines in flight, and those that have ended."""
        tallies = self._tallies.values()
        waiting = sum(tally.in_flight for tally in tallies)
        return waiting, sum(tally.requests for tally in tallies) - waiting

    def touch(self) -> None:
        """Enter how far all is, unless that was done just now."""
        if self._clock() - self._saved >= SECONDS:
            self.save()

    def save(self) -> None:
        """Enter how far all is."""
        self._saved = self._clock()
        times, peaks = (self._wall.seconds, self._busy.seconds), (self._peak.memory, self._peak.gpu)
        session = SessionRow(self._session, self._started, *times, *peaks, self._restarts)
        self._used.save(session, self._stage_rows(), [self._row(*place) for place in self._tallies])

    def _end(self, stage: str) -> None:
        wall, _ = self._clocks(stage)
        wall.leave()
        if not wall.under_way:
            for place, tally in self._tallies.items():
                if place[0] == stage:
                    tally.forget()

    def _tally(self, place: Place) -> Tally:
        if place not in self._tallies:
            _, busy = self._clocks(place[0])
            self._tallies[place] = Tally(self._clock, (busy, self._busy), self.touch)
        return self._tallies[place]

    def _clocks(self, stage: str) -> tuple[Busy, Busy]:
        """How long a stage goes on, and its engines work."""
        return self._stages.setdefault(stage, (Busy(self._clock), Busy(self._clock)))

    def _stage_rows(self) -> list[StageRow]:
        return [StageRow(self._session, n, wall.seconds, busy.seconds) for n, (wall, busy) in self._stages.items()]

    def _row(self, stage: str, role: str, model: str) -> UsageRow:
        place = stage, role, model
        tally, kept = self._tallies[place], self._kept.get(place, NO_USAGE)
        return UsageRow(
            session=self._session,
            stage=stage,
            role=role,
            model=model,
            requests=tally.requests,
            failed=tally.failed,
            aborted=tally.aborted,
            usage=tally.usage,
            distinct=tally.distinct,
            kept=kept,
            busy_s=tally.busy,
        )


def read_usage(folder: Path) -> tuple[UsageRow, ...]:
    """What all sessions of the run in `folder` asked; empty where they were of a version that kept no account."""
    with Store.read(folder) as store:
        return store.used.rows()
