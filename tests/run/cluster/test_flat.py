"""What the driver of a run over workers keeps in memory does not grow with the jobs."""

from __future__ import annotations

import importlib
import tracemalloc
from pathlib import Path

import pytest

from vera_local.run.cluster import backlog

SCRIPTS = Path(__file__).parents[3] / "scripts"
ENOUGH = 500
"""Bytes for each job; its two messages alone would take twice as much, its reports many times."""


def peak_of(least: int, folder: Path) -> tuple[int, int]:
    """The jobs of a run of at least so many, on virtual time, and the bytes that it takes at most, workers among it."""
    scale, virtual, standins = map(importlib.import_module, ("bench_scale", "bench_virtual", "bench_standins"))
    folder.mkdir()
    plan = scale.plan_of(least, folder)
    with scale.begun(plan) as store:
        tracemalloc.start()
        try:
            virtual.virtually(scale.run_over(plan, store, standins.gathering(4, scale.FIXED)))
            return plan.count, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def test_the_driver_s_memory_does_not_grow_with_the_jobs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    monkeypatch.setattr(backlog, "KEPT", 20)
    monkeypatch.setattr(backlog, "PAGE", 10)
    # What is made once, whoever is first.
    peak_of(1, tmp_path / "first")
    (few, little), (many, most) = peak_of(100, tmp_path / "few"), peak_of(600, tmp_path / "many")
    assert most - little < ENOUGH * (many - few)
