"""How far a run goes that is spread over engines: its driver, with workers that have no models.

Runs of the bundle psychosis, two messages and seven verdicts for each conversation, by the real driver and a real store
on disk. One JSON object a line.

--commits N: N conversations as fast as the driver takes them, in real time, with all workers in its own process;
reports are pickled as on a network. `commits_per_s`: messages and verdicts by the wall clock; `driver_per_s`: by the
time that the driver itself takes to read and commit them and to give out jobs. `bytes`: of the store and of a report on
the wire, for each message or verdict.
--engines N ...: runs on N engines of a fixed rate, on virtual time, in which the driver takes as long as the figures
above say. `speed`: how many times faster than one engine can be at most; `of_all`: the same as a part of N.
--memory N ...: the most memory (MB) of the driver's process, workers among it, in runs of N conversations, each in a
process of its own: before the run, when its conversations are entered, when all is done and, with --publish, when its
results are written. --unjudged leaves the verdicts out.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench_overhead import flags
from bench_standins import Pace, Toll, gathering
from bench_virtual import virtually
from rich.console import Console

from vera_local.run import Plan, Watcher, load_config, make_plan, manifest
from vera_local.run.cluster.dispatch import Dispatch
from vera_local.run.cluster.spread import Gathering, spread
from vera_local.run.cluster.wire import Report, Task
from vera_local.run.folder import prepare_folder
from vera_local.run.publishing import publish
from vera_local.run.store import NAME, Store

COMMITS = 9
"""Messages and verdicts of one conversation."""

AT_ONCE = Pace(sequences=64, message=0.0, verdict=0.0, room=64)

FIXED = Pace(sequences=4, message=4.0, verdict=2.0, room=8)

REPORT_SECONDS, COMMIT_SECONDS = 0.0005, 0.0001
"""What the driver takes for a report, and for a message or verdict: somewhat more than --commits shows."""


def plan_of(conversations: int, folder: Path) -> Plan:
    """A run of at least so many conversations, in `folder`."""
    given = flags(0, 1, 2, folder) | {"bundle": "psychosis"}
    del given["personas"], given["simulator"]
    personas = len(make_plan(load_config(None, given)).personas)
    return make_plan(load_config(None, given | {"repeats": -(-conversations // personas)}))


@contextmanager
def begun(plan: Plan) -> Iterator[Store]:
    """A run's folder and store, with its conversations entered."""
    prepare_folder(plan.out)
    manifest.enter(plan)
    manifest.enter_judges(plan)
    with Store.open(plan.out) as store:
        store.begin(plan.conversations())
        yield store


async def run_over(plan: Plan, store: Store, gather: Gathering, *, judge: bool = True) -> None:
    """All that is to be done."""
    await spread(plan, store, gather, Watcher(Console(file=io.StringIO())), simulate=True, judge=judge)


class Stopwatch:
    """The time that the driver itself takes: what it reads, commits and gives out."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.bytes = self.reports = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of a block."""
        began = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - began

    async def wire(self, report: Report) -> Report:
        """As between processes; only reading is the driver's."""
        sent = pickle.dumps(report)
        self.bytes += len(sent)
        self.reports += 1
        with self.running():
            carried: Report = pickle.loads(sent)
        return carried

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count the driver's time meanwhile."""
        enter, take = Dispatch.enter, Dispatch.take

        def entered(dispatch: Dispatch, worker: int, report: Report) -> None:
            with self.running():
                enter(dispatch, worker, report)

        def taken(dispatch: Dispatch, worker: int) -> list[Task]:
            with self.running():
                return take(dispatch, worker)

        with patch.object(Dispatch, "enter", entered), patch.object(Dispatch, "take", taken):
            yield


def commits(conversations: int, workers: int) -> dict[str, Any]:
    """What the driver sustains."""
    watch, pace = Stopwatch(), Pace(64, message=0.0, verdict=0.0, room=64, words=60)
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_of(conversations, Path(folder))
        total = plan.count * COMMITS
        with begun(plan) as store, watch.watching():
            began = time.perf_counter()
            asyncio.run(run_over(plan, store, gathering(workers, pace, watch.wire)))
            seconds = time.perf_counter() - began
        size = (plan.out / NAME).stat().st_size
    return {
        "workers": workers,
        "commits": total,
        "reports": watch.reports,
        "commits_per_s": round(total / seconds),
        "driver_per_s": round(total / watch.seconds),
        "bytes": {"store": round(size / total), "wire": round(watch.bytes / total)},
    }


def curve(engines: int, each: int) -> dict[str, Any]:
    """A run on engines of a fixed rate, `each` of which has so many conversations on the average."""
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_of(engines * each, Path(folder))
        gather = gathering(engines, FIXED, Toll(REPORT_SECONDS, COMMIT_SECONDS))
        with begun(plan) as store:
            _, seconds = virtually(run_over(plan, store, gather))
    speed = plan.count / FIXED.rate / seconds
    return {
        "engines": engines,
        "conversations": plan.count,
        "virtual_s": round(seconds, 1),
        "commits_per_s": round(plan.count * COMMITS / seconds),
        "speed": round(speed, 2),
        "of_all": round(speed / engines, 3),
    }


def memory(conversations: int, *, judge: bool, published: bool) -> dict[str, Any]:
    """The peaks of one run in this process."""
    peaks: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_of(conversations, Path(folder))
        peaks["before"] = _peak_mb()
        began = time.perf_counter()
        with begun(plan) as store:
            peaks["entered"] = _peak_mb()
            asyncio.run(run_over(plan, store, gathering(16, AT_ONCE), judge=judge))
            peaks["done"] = _peak_mb()
            seconds = time.perf_counter() - began
            if published:
                publish(plan.out, plan.bundle, store)
                peaks["published"] = _peak_mb()
        size = (plan.out / NAME).stat().st_size
    return {"conversations": plan.count, "peak_mb": peaks, "seconds": round(seconds), "store_mb": round(size / 1e6)}


def _peak_mb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def apart(conversations: int, *options: str) -> str:
    """`memory` in a process of its own: the peak of a process never goes down."""
    command = [sys.executable, __file__, "--here", "--memory", str(conversations), *options]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]


def main(given: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, metavar="N")
    parser.add_argument("--workers", type=int, default=16, help="of --commits")
    parser.add_argument("--engines", type=int, nargs="+", default=[], metavar="N")
    parser.add_argument("--each", type=int, default=160, help="conversations for each of --engines")
    parser.add_argument("--memory", type=int, nargs="+", default=[], metavar="N")
    parser.add_argument("--publish", action="store_true")
    parser.add_argument("--unjudged", action="store_true")
    parser.add_argument("--here", action="store_true", help="--memory in this very process")
    asked = parser.parse_args(given)
    if asked.commits:
        print(json.dumps(commits(asked.commits, asked.workers)), flush=True)
    for engines in asked.engines:
        print(json.dumps(curve(engines, asked.each)), flush=True)
    for conversations in asked.memory:
        if asked.here:
            told = memory(conversations, judge=not asked.unjudged, published=asked.publish)
            print(json.dumps(told), flush=True)
        else:
            options = [f"--{name}" for name in ("publish", "unjudged") if getattr(asked, name)]
            print(apart(conversations, *options), flush=True)


if __name__ == "__main__":
    main()
