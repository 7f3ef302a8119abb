"""The benchmarks in scripts/: their options, what they are made of, and a small one on the real engine."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
BENCHMARKS = (
    "bench_judge",
    "bench_simulate",
    "bench_tail",
    "bench_overhead",
    "bench_score",
    "bench_report",
    "bench_scale",
)


def run(name: str, *options: str) -> str:
    command = [sys.executable, str(SCRIPTS / f"{name}.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_tells_its_options(name: str) -> None:
    assert f"usage: {name}.py" in run(name, "--help")


def test_transcripts_are_the_same_every_time_and_each_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    made_up = importlib.import_module("bench_transcripts").made_up

    once, again = made_up(6, 10, 3), made_up(6, 10, 3)
    assert once == again
    assert all(c.judgeable for c in once)
    assert len({c.messages for c in once}) == 6
    assert {len(c.messages) for c in once} <= {8, 10, 12}


def test_the_benchmark_of_the_driver_measures() -> None:
    lines = run("bench_scale", "--commits", "20", "--workers", "2", "--memory", "20", "--publish").splitlines()
    commits, memory = map(json.loads, lines)
    assert commits["driver_per_s"] > commits["commits_per_s"] > 0
    assert commits["commits"] == 9 * memory["conversations"]
    peaks = memory["peak_mb"]
    assert 0 < peaks["before"] <= peaks["entered"] <= peaks["done"] <= peaks["published"]


@pytest.mark.vllm
def test_the_benchmark_of_the_tail_measures() -> None:
    told = json.loads(run("bench_tail", "--transcripts", "1", "--turns", "4", "--tokens", "4").splitlines()[-1])
    assert told["same_ratings"] is True
    assert told["verdicts"] > 0 and told["verdicts_direct"] > 0
    assert {"lookahead_speedup", "lookahead_speedup_direct", "wasted_tokens", "wasted_tokens_direct"} <= told.keys()
