"""Two engines of the embedded model, side by side on a CPU."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from vera_local.engine.placement import OVERHEAD, Residency
from vera_local.engine.seam import ChatMessage, Request, Sampling
from vera_local.run import load_config, make_plan, opener
from vera_local.run.host import Host
from vera_local.run.needs import needs_of

pytestmark = [pytest.mark.vllm, pytest.mark.asyncio(loop_scope="session")]

PATIENCE = 20

HELLO = Request((ChatMessage("user", "Tell me about the sea."),), Sampling(0.8, 0.95, 8, 1))


@pytest.fixture
def roomy_machine() -> None:
    """These engines do need this machine's memory."""


async def test_two_engines_of_one_model_work_side_by_side(tmp_path: Path) -> None:
    plan = make_plan(load_config(None, {"out": tmp_path / "run", "replicas": 2}))
    host = Host(opener(tmp_path / "engine.log"), needs_of(plan, simulate=True, judge=True))
    players = (*plan.speakers, plan.judges[0].player)
    before, started = _processes(), set[psutil.Process]()
    try:
        await host.ready(players)
        assert host.arrangement.residency is Residency.TOGETHER and host.together
        first, second = host.engines(plan.judges[0].player)
        assert host.engines(plan.speakers[0]) == (first, second)
        replies = await asyncio.gather(*(engine.generate(HELLO) for engine in (first, second, second)))
        # The same model and seed; each has a cache of its own.
        assert len({reply.text for reply in replies}) == 1
        other = replace(HELLO, sampling=replace(HELLO.sampling, seed=2))
        assert (await first.generate(other)).text != replies[0].text
        assert first.limits == second.limits
        started = _processes() - before
        _must_take_what_was_reckoned(started)
    finally:
        await host.aclose()
    # The core ends with its engine and the worker with its core; Python's tracker of shared memory is ours.
    _, alive = psutil.wait_procs([p for p in started if p.is_running() and "VLLM" in p.name()], timeout=PATIENCE)
    assert not alive


def _must_take_what_was_reckoned(started: set[psutil.Process]) -> None:
    """What two engines' processes hold is no more than the weights, KV caches and overhead that they were placed by."""
    weights, kv = 538_000_000, 2**30
    taken = sum(process.memory_info().rss for process in started)
    assert 2 * weights <= taken <= 2 * (weights + kv + OVERHEAD["cpu"])


def _processes() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))
