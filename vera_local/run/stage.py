"""What the jobs of one stage share: the store, the engines' room and the meter. Knows neither talking nor judging."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from vera_local.engine.admission import Admission
from vera_local.engine.seam import Usage
from vera_local.run.progress import Meter
from vera_local.run.store import Store


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage at work; `changed` tells whoever shows the meter."""

    store: Store
    admission: Admission
    meter: Meter
    changed: Callable[[], None]

    @asynccontextmanager
    async def job(self, tokens: int) -> AsyncIterator[None]:
        """One conversation, from its admission with so many KV tokens to its end, which only a whole block reaches."""
        async with self.admission.hold(tokens):
            self.meter.in_flight += 1
            yield
            self.meter.in_flight -= 1
            self.meter.jobs_done += 1
            self.changed()

    def step(self, usage: Usage) -> None:
        """A message or verdict that was committed, and what it cost."""
        self.meter.steps_done += 1
        self.meter.usage += usage
        self.changed()
