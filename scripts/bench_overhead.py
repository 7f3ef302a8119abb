"""What a run costs beside its engine: our own CPU time per request, peak memory and the size of the store.

Whole runs by `vera_local.run.run`, from the plan to the files of results, on a FakeEngine that answers at once:
personas of suicide_risk, messages of about 30 and 60 words, a judge that answers at once with evidence and confidence,
and such answers that it is asked most of the rubric. One run of `--personas` x `--repeats` conversations and one of ten
times as many repeats, each in a process of its own, since the peak of a process never goes down. `--small` leaves the
large one out. The last line is one JSON object: microseconds of CPU of the whole process per request to the engine,
with what the engine itself takes of them; memory and sizes in MB.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import math
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console

from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import ChatMessage, Engine, Finish, Limits, Reply, Request, Sampling, Usage
from vera_local.run import Opening, Watcher, load_config, make_plan, run
from vera_local.run.store import NAME as STORE

WORDS = {"persona": 30, "chatbot": 60}
LIMITS = Limits(context=100_000, kv_tokens=1_000_000, sequences=256)
POOL = 4096
"""Texts of each side; each gets a word of its own when it is said, so that none is said twice."""

PROFILE = """
name = "fake"
title = "An engine that answers at once"
licence = "none"
weight_gb = 0.001
kv_bytes_per_token = 1
context = 100000
[source]
path = "{folder}"
[engine]
dtype = "auto"
[template]
system_role = true
thinking = "none"
markers = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
[roles.simulator]
temperature = 0.8
top_p = 0.95
max_tokens = 200
[roles.chatbot]
temperature = 0.7
top_p = 0.95
max_tokens = 400
[roles.judge]
temperature = 0.0
top_p = 1.0
max_tokens = 512
"""


class Answers:
    """What the engine says, made in advance as far as it can be; a request's own seed alone decides."""

    def __init__(self) -> None:
        draw = random.Random(0)
        words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(3000)]
        self._texts = {side: [_text(draw, words, n) for _ in range(POOL)] for side, n in WORDS.items()}

    def __call__(self, request: Request) -> Reply:
        seed = request.sampling.seed
        if request.labels:
            share = math.log(1 / len(request.labels))
            return Reply("", Finish.LENGTH, _usage(request, 1), dict.fromkeys(request.labels, share))
        if request.pattern is None:
            texts = self._texts["persona" if request.messages[-1].role == "user" and _simulates(request) else "chatbot"]
            return Reply(f"{texts[seed % POOL]} {seed:x}.", Finish.STOP, _usage(request, 60))
        options = _options(request.pattern)
        return Reply(options[seed % len(options)], Finish.STOP, _usage(request, 3))


def _simulates(request: Request) -> bool:
    return request.sampling.max_tokens == 200


def _usage(request: Request, output: int) -> Usage:
    return Usage(100 * len(request.messages), 0, output)


@cache
def _options(pattern: str) -> list[str]:
    """Of what a pattern allows the answers that lead far through the rubric, each as often as it is to be given."""
    if pattern.startswith("(none|"):
        return ["none", "2", "4", "2, 4"]
    first, second, *_ = [option.replace("\\", "") for option in re.sub(r"^\(|\)?\$$", "", pattern).split("|")]
    if first != "Yes":
        return [second]
    return [first] if "declines" in pattern else [first, *[second] * 7]


def _text(draw: random.Random, words: list[str], n: int) -> str:
    sentences = [" ".join(draw.choices(words, k=10)).capitalize() for _ in range(n // 10)]
    return ". ".join(sentences) + "."


def measure(personas: int, repeats: int, turns: int, folder: Path) -> dict[str, Any]:
    """One run in this process."""
    start = _peak_mb()
    plan = make_plan(load_config(None, flags(personas, repeats, turns, folder)))
    engine = FakeEngine(Answers(), LIMITS, light=True)

    async def opener(opening: Opening) -> Engine:
        return engine

    wall, cpu = time.perf_counter(), time.process_time()
    outcome = asyncio.run(run(plan, opener, Watcher(Console(file=io.StringIO()))))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert not outcome.missing_verdicts and len(outcome.scores) == 1, "the run is not whole"
    return {
        "us_per_request": round(cpu / engine.asked * 1e6, 1),
        "peak_mb": round(_peak_mb()),
        "store_mb": round((plan.out / STORE).stat().st_size / 1e6, 1),
        "conversations": len(outcome.conversations),
        "requests": engine.asked,
        "start_mb": round(start),
        "wall_s": round(wall, 1),
    }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def flags(personas: int, repeats: int, turns: int, folder: Path) -> dict[str, Any]:
    """A run of the benchmark's engine in every role, its profile and its model in `folder`."""
    model, profile = folder / "model", folder / "fake.toml"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"")
    profile.write_text(PROFILE.format(folder=model))
    roles = {"simulator": str(profile), "chatbot": str(profile), "judge": [str(profile)]}
    return {"out": folder / "run", "personas": personas, "repeats": repeats, "turns": turns, **roles}


def engine_share(requests: int = 20_000) -> float:
    """Microseconds that the engine of this benchmark takes for a request, which count as ours."""
    engine = FakeEngine(Answers(), LIMITS, light=True)
    messages = tuple(ChatMessage("user", "word " * 45) for _ in range(16))

    async def ask() -> None:
        for seed in range(requests):
            await engine.generate(Request(messages, Sampling(0.0, 1.0, 200, seed)))

    began = time.process_time()
    asyncio.run(ask())
    return (time.process_time() - began) / requests * 1e6


def apart(personas: int, repeats: int, turns: int) -> dict[str, Any]:
    """`measure` in a process of its own."""
    sizes = ["--personas", str(personas), "--repeats", str(repeats), "--turns", str(turns)]
    done = subprocess.run([sys.executable, __file__, "--here", *sizes], check=True, stdout=subprocess.PIPE, text=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def compared(personas: int, repeats: int, turns: int, *, small: bool) -> dict[str, Any]:
    """Both runs; what the large one took has _10x behind its name."""
    sizes = {"turns": turns, "personas": personas, "repeats": repeats, "words": WORDS}
    told = {**apart(personas, repeats, turns), "engine_us_per_request": round(engine_share(), 1), **sizes}
    if not small:
        told |= {f"{key}_10x": value for key, value in apart(personas, 10 * repeats, turns).items()}
    return told


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--personas", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=10, help="conversations of each persona, in the small run")
    parser.add_argument("--turns", type=int, default=30, help="messages of a conversation")
    parser.add_argument("--small", action="store_true", help="leave out the run of ten times as many")
    parser.add_argument("--here", action="store_true", help="one run in this very process")
    given = parser.parse_args()
    sizes = given.personas, given.repeats, given.turns
    if given.here:
        with tempfile.TemporaryDirectory() as folder:
            told = measure(*sizes, Path(folder))
    else:
        told = compared(*sizes, small=given.small)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
