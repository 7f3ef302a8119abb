"""What a sweep may reach beyond this machine: the hosts of all its configs, and each run's manifest says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.answers import at_random
from vera_local.engine.attempts import note, write
from vera_local.engine.seam import Request
from vera_local.run import Watcher, manifest
from vera_local.run.network import LOG, WentBeyond
from vera_local.run.sweep_file import Asked, read_sweep
from vera_local.run.sweeping import sweep

Answering = Callable[..., Any]


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    """Two seeds of one chatbot, rated by a judge at a server elsewhere."""
    file = tmp_path / "s.toml"
    out = json.dumps(str(tmp_path / "out"))
    judge = 'judge = "judge@http://gpu1.lab:8000/v1"'
    file.write_text(f"personas = 2\nturns = 2\n{judge}\n[sweep]\nout = {out}\nseeds = [0, 1]\n", encoding="utf-8")
    return read_sweep(file)


def noted(asked: Asked) -> list[dict[str, Any]]:
    begun = [manifest.read(point.plan.out) for point in asked.points]
    return [one["network"] for one in begun if one is not None]


async def test_each_run_says_what_it_could_reach(asked: Asked, answering: Answering, watcher: Watcher) -> None:
    await sweep(asked, answering(at_random), watcher)
    assert [one["hosts"] for one in noted(asked)] == [["gpu1.lab"]] * 2
    assert all(sum(one["attempts"].values()) == 0 for one in noted(asked))


async def test_what_was_refused_ends_the_sweep_with_all_runs_whole(
    asked: Asked, answering: Answering, watcher: Watcher
) -> None:
    tried: list[bool] = []

    def reaching(request: Request) -> str:
        if not tried:
            tried.append(write(asked.out / LOG, [note("connect", "192.0.2.7:80", "refused", None)]))
        return at_random(request)

    with pytest.raises(WentBeyond, match=r"1 attempt to reach something beyond this machine, such as .*192\.0\.2\.7"):
        await sweep(asked, answering(reaching), watcher)
    assert noted(asked)[0]["attempts"]["refused"] == 1
    idle = answering(at_random)
    swept = await sweep(asked, idle, watcher)
    assert len(swept.done) == 2
    assert all(not engine.requests for engine in idle.engines)
