"""The benchmark of our own overhead runs and tells all that it is to tell. What it measures is no matter of a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_both_runs_are_told_with_their_sizes() -> None:
    sizes = ["--personas", "2", "--repeats", "1", "--turns", "4"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts/bench_overhead.py"), *sizes],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["conversations"] == 2 and told["conversations_10x"] == 20
    assert (told["personas"], told["repeats"], told["turns"]) == (2, 1, 4)
    assert told["requests_10x"] > 5 * told["requests"] > 5 * 2 * (4 + 20), "most of the rubric is asked"
    measured = {"us_per_request", "engine_us_per_request", "peak_mb", "peak_mb_10x", "store_mb", "store_mb_10x"}
    assert all(told[name] > 0 for name in measured)
