"""What the work behind a run came to, from its store and its manifest. Opens no model and prints nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vera_local.conversation import RETRIED
from vera_local.errors import UserError
from vera_local.report.cost import Cost
from vera_local.report.usage import Work
from vera_local.run.evaluate import must_hold_run
from vera_local.run.store import Store


def work_of(folder: Path) -> Work:
    """What was done for the run in `folder`; UserError where it holds no run."""
    begun = must_hold_run(folder)
    with Store.read(folder) as store:
        return work_in(store, begun)


def work_in(store: Store, begun: Mapping[str, Any]) -> Work:
    """What was done for the run of this store and manifest."""
    ended = sum(seen.ending is not None and seen.ending not in RETRIED for seen in store.glances.sights())
    return Work(store.used.sessions(), store.used.stages(), store.used.rows(), store.usage(), ended, _gpus(begun))


def cost_of(work: Work, price: float, gpus: int | None) -> Cost:
    """At `price` for each GPU and hour, on as many `gpus` or else on those of the run's machine.

    UserError where nobody knows how many GPUs to pay, or how long.
    """
    if not work.rows:
        raise UserError("this run was made by a version that kept no record of its time, so its cost is not known")
    if not (gpus or work.gpus):
        raise UserError(
            "--gpu-hour-price is the price of one GPU for an hour, and the run's manifest names no GPU; "
            "give their number with --gpus, or leave the price out"
        )
    return Cost(work.wall_s / 3600, gpus or work.gpus, price, work.ended)


def _gpus(begun: Mapping[str, Any]) -> int:
    if (cluster := begun.get("cluster")) is not None:
        return int(cluster["workers"]) * int(cluster["gpus_each"])
    hardware = begun.get("hardware") or {}
    return int(hardware.get("gpus", 0)) if hardware.get("device") == "cuda" else 0
