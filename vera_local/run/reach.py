"""How far a run goes that is spread over workers: how long it takes, what its driver does, and what bounds it first.

Arithmetic on the forecast of one worker; opens nothing and knows no cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from vera_local.chatbot import Manners
from vera_local.engine.machine import Machine
from vera_local.errors import UserError
from vera_local.run.cluster.drive import pause_of
from vera_local.run.cluster.nodes import gpus_each
from vera_local.run.cluster.shares import most_workers, share_of
from vera_local.run.forecast import Forecast
from vera_local.run.host import key_of
from vera_local.run.paper import CHARACTERS
from vera_local.run.plan import Plan
from vera_local.run.rehearsal import CHATBOT, TALK
from vera_local.run.wanted import by_engine

BOX = 8
"""GPUs of a machine, where a cluster is asked about that is not here."""

COMMITS_PER_SECOND = 8_000
"""Messages and verdicts that one driver keeps, on one core of a busy machine, by
`scripts/bench_scale.py --commits 4000`."""

BYTES_PER_SECOND = 125e6
"""Of a network of 1 Gbit/s, which is slow for a cluster."""

CONVERSATION_BYTES, MESSAGE_BYTES, VERDICT_BYTES, RATING_BYTES = 65, 70, 170, 112
"""What a store takes for each beside its text, with its indexes: measured on stores of whole runs."""

RESULT_BYTES = 800
"""Memory for each rating and what it rests on while results are written, by
`scripts/bench_scale.py --memory 100000 --publish`."""

WIRE_BYTES = 120
"""What a report takes for a message or verdict beside its text, by `scripts/bench_scale.py --commits 4000`."""

ASSUMED = (
    "Workers take conversations as they have room; at the end half of a conversation's time goes by until the last one "
    "has nothing to do. This was compared with runs on virtual time, up to 1,000 engines, and with no cluster of GPUs.",
    "Store and network take beside the texts what was measured on whole runs.",
)
"""What the figures rest on beside those of one worker."""


@dataclass(frozen=True, slots=True)
class Load:
    """All that goes through the driver of a run, in bytes beside the counts. `network`: from and to it; `memory`: what
    it takes in the end, to write the results."""

    messages: float
    verdicts: float
    store: float
    network: float
    memory: float

    @property
    def commits(self) -> float:
        """Messages and verdicts."""
        return self.messages + self.verdicts


@dataclass(frozen=True, slots=True)
class Bound:
    """What a run waits for, and why: it cannot end sooner than in so many seconds."""

    name: str
    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Reach:
    """A run on so many workers, which are paid `gpus` in all; `alone`: one of them with all of the work. `bounds`: the
    one that decides first; none where the speed of the engines is not known."""

    alone: Forecast
    workers: int
    gpus: int
    load: Load
    bounds: tuple[Bound, ...]

    @property
    def seconds(self) -> float | None:
        """Of the whole run."""
        return self.bounds[0].seconds if self.bounds else None

    @property
    def commits_per_second(self) -> float | None:
        """What the engines would have the driver keep if nothing else held them up."""
        engines = _engines_seconds(self.alone, self.workers)
        return None if engines is None else self.load.commits / engines

    @property
    def reports_per_second(self) -> float:
        """Reports of all workers together, at most."""
        return self.workers / pause_of(self.workers)

    @property
    def network_per_second(self) -> float | None:
        """Bytes from and to the driver, on the average."""
        return None if self.seconds is None else self.load.network / self.seconds

    def cost(self, gpu_hour_price: float) -> float | None:
        """In the unit of the price, for all GPUs, used or not; for so many machines where there are none."""
        return None if self.seconds is None else self.seconds / 3600 * (self.gpus or self.workers) * gpu_hour_price


class Shape(NamedTuple):
    """So many workers, and what each has: the plan with its share of the chatbot's limits, and a part of the GPUs."""

    workers: int
    plan: Plan
    machine: Machine


def shape_of(plan: Plan, machine: Machine) -> Shape:
    """How a run would be spread over all GPUs that `machine` stands for; UserError where they are too few for one
    worker."""
    each = machine.gpus and _gpus_each(plan, machine)
    if each > machine.gpus:
        raise UserError(f"--gpus {machine.gpus}: one worker of this run needs {each}; give at least as many")
    actors = plan.config.actors
    room = machine.gpus // each if each else actors or 1
    workers = min(filter(None, (room, actors, most_workers(plan), plan.count)))
    return Shape(workers, share_of(plan, workers, 0), replace(machine, gpus=each))


def _gpus_each(plan: Plan, machine: Machine) -> int:
    if plan.config.actor_gpus is not None:
        return plan.config.actor_gpus
    return gpus_each(plan, [replace(machine, gpus=min(BOX, machine.gpus))], simulate=True, judge=True)


def reach(alone: Forecast, workers: int, gpus: int, sustained: float = COMMITS_PER_SECOND) -> Reach:
    """A run on so many workers and `gpus` in all: `alone` is the forecast of one worker with all of the work; the
    driver keeps `sustained` messages and verdicts a second."""
    load = load_of(alone)
    bounds = [*_of_engines(alone, workers), *_of_driver(load, sustained), *_of_chatbot(alone, workers)]
    known = _engines_seconds(alone, workers) is not None
    decided = tuple(sorted(bounds, key=lambda bound: -bound.seconds)) if known else ()
    return Reach(alone, workers, gpus, load, decided)


def spread_seconds(alone: float, workers: int, latency: float) -> float:
    """What takes one worker so long, done by several. A conversation in work takes `latency` seconds, and at the end
    half of that goes by until the last worker has nothing to do any more."""
    return max(latency, alone / workers + latency / 2)


def load_of(alone: Forecast) -> Load:
    """What the driver is told and keeps."""
    plan, samples = alone.plan, alone.samples
    said = [message.text for sample in samples for message in sample.messages]
    each = plan.count / len(samples)
    messages, text = len(said) * each, sum(len(words.encode()) for words in said) * each
    verdicts = sum(line.part.verdicts for line in alone.lines)
    reasons = sum(line.part.verdicts * line.part.reasons for line in alone.lines) * CHARACTERS
    ratings = plan.count * len(plan.judges) * len(plan.bundle.rubric.dimensions)
    rows = plan.count * CONVERSATION_BYTES + messages * MESSAGE_BYTES + verdicts * VERDICT_BYTES
    # A conversation goes to whoever judges it, too.
    network = (messages + verdicts) * WIRE_BYTES + text * (1 + len(by_engine(plan.judges))) + reasons
    return Load(
        messages=messages,
        verdicts=verdicts,
        store=rows + text + reasons + ratings * RATING_BYTES,
        network=network,
        memory=ratings * RESULT_BYTES,
    )


def _engines_seconds(alone: Forecast, workers: int) -> float | None:
    if alone.seconds is None:
        return None
    return spread_seconds(alone.seconds, workers, _latency(alone))


def _latency(alone: Forecast) -> float:
    """Seconds of one conversation, while others are in work."""
    seconds = 0.0
    for stage in alone.stages:
        at_once = [n.at_once for n in alone.lines if n.part.place.stage == stage.name and n.at_once is not None]
        seconds += (stage.seconds or 0.0) * min(at_once, default=1) / alone.plan.count
    return seconds


def _of_engines(alone: Forecast, workers: int) -> Iterator[Bound]:
    seconds = _engines_seconds(alone, workers)
    if seconds is None:
        return
    yield Bound(*_what_is_scarce(alone, workers), seconds=seconds)


def _what_is_scarce(alone: Forecast, workers: int) -> tuple[str, str]:
    """What the engines would have to have more of, and why, told of the work that takes them longest."""
    each = math.ceil(alone.plan.count / workers)
    if _engines_seconds(alone, workers) == _latency(alone):
        return "length of one conversation", f"all of a worker's go on at once, {each:,} at most"
    line = max(alone.lines, key=lambda line: line.seconds or 0.0)
    player, chatbot, at_once = line.part.player, alone.plan.chatbot, line.at_once
    engine = None if player is None else alone.housing.engines.get(key_of(player))
    if engine is None or at_once is None or at_once >= min(each, engine.most):
        return ("GPUs", "they compute all the time") if alone.machine.gpus else ("engines", "they work all the time")
    if line.part.place.stage == TALK and isinstance(chatbot, Manners) and at_once >= chatbot.concurrency:
        return "the chatbot's limit", f"each worker may ask {chatbot.title} for {chatbot.concurrency:,} replies at once"
    return "KV cache", f"each worker has room for {at_once:,} conversations at once"


def _of_driver(load: Load, sustained: float) -> Iterator[Bound]:
    why = f"one driver keeps {sustained:,.0f} messages and verdicts a second"
    yield Bound("driver commits", why, load.commits / sustained)
    why = f"{BYTES_PER_SECOND * 8 / 1e9:.0f} Gbit/s to the driver"
    yield Bound("network", why, load.network / BYTES_PER_SECOND)


def _of_chatbot(alone: Forecast, workers: int) -> Iterator[Bound]:
    chatbot = alone.plan.chatbot
    if not isinstance(chatbot, Manners) or chatbot.requests_per_minute is None:
        return
    requests = sum(line.part.work.requests for line in alone.lines if line.part.place.role == CHATBOT)
    rate = chatbot.requests_per_minute * workers
    yield Bound("the chatbot's limit", f"{chatbot.title} takes {rate:,g} requests a minute", requests / rate * 60)
