"""What a run that is spread over workers would take and what would bound it, printed. Computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from vera_local.report.cost import money
from vera_local.run.reach import BYTES_PER_SECOND, COMMITS_PER_SECOND, Reach


def lines(told: Reach, price: float | None, time: Callable[[float | None], str]) -> Iterator[str]:
    """In words, seconds as `time` tells them."""
    load = told.load
    gpus = f" with {_many(told.alone.machine.gpus, 'GPU')} each" if told.alone.machine.gpus else ""
    yield f"{'Workers':<16}{told.workers:,}{gpus}"
    yield f"{'In all':<16}{time(told.seconds)}"
    if price is not None:
        cost, hour = told.cost(price), "a GPU-hour" if told.gpus else "an hour of such a machine"
        yield f"{'Cost':<16}{'not known' if cost is None else f'{money(cost)} at {price:g} for {hour}'}"
    yield f"{'Store':<16}{_bytes(load.store)}: {load.messages:,.0f} messages, {load.verdicts:,.0f} verdicts"
    yield f"{'Memory':<16}{_bytes(load.memory)} of the driver when the results are written"
    if told.commits_per_second is not None and told.network_per_second is not None:
        yield (
            f"{'Driver':<16}{told.commits_per_second:,.1f} messages and verdicts a second keep all engines busy; one "
            f"driver keeps {COMMITS_PER_SECOND:,}"
        )
        yield f"{'Reports':<16}at most {told.reports_per_second:,.0f} a second"
        yield f"{'Network':<16}{_bytes(told.network_per_second)}/s of {_bytes(BYTES_PER_SECOND)}/s, at the driver"
    for place, bound in enumerate(told.bounds):
        yield f"{'Next' if place else 'First limit':<16}{bound.name}, {time(bound.seconds)}: {bound.why}"


def as_json(told: Reach, price: float | None) -> dict[str, Any]:
    """All of it; times in seconds, sizes in bytes. The first of the `bounds` is the one that decides."""
    return {
        "workers": told.workers,
        "gpus": told.gpus,
        "gpus_each": told.alone.machine.gpus,
        "seconds": told.seconds,
        "cost": None if price is None else told.cost(price),
        "messages": told.load.messages,
        "verdicts": told.load.verdicts,
        "store_bytes": told.load.store,
        "results_memory_bytes": told.load.memory,
        "network_bytes": told.load.network,
        "network_bytes_per_second": told.network_per_second,
        "commits_per_second": told.commits_per_second,
        "commits_per_second_sustained": COMMITS_PER_SECOND,
        "reports_per_second": told.reports_per_second,
        "bounds": [asdict(bound) for bound in told.bounds],
    }


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _bytes(count: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count / 1e3:,.1f} kB"
