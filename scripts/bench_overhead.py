"""What a run costs beside its engine: our own CPU time per request, peak memory and the size of the store.

Whole runs by `vera_local.run.run`, from the plan to the files of results, on a FakeEngine that answers at once: every
persona of suicide_risk, `--turns` messages, messages of about 30 and 60 words, a judge that answers at once with
evidence and confidence. One run of `--conversations` and one of ten times as many, each in a process of its own, since
the peak of a process never goes down. `--small` leaves the large one out. The last line is one JSON object.
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
from vera_local.engine.seam import Engine, Finish, Limits, Reply, Request, Usage
from vera_local.run import Opening, Watcher, load_config, make_plan, run
from vera_local.run.store import NAME as STORE

PERSONAS = 100
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


def measure(conversations: int, turns: int, folder: Path) -> dict[str, Any]:
    """One run in this process."""
    began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    plan = make_plan(load_config(None, _flags(conversations, turns, folder)))
    engine = FakeEngine(Answers(), LIMITS, light=True)

    async def opener(opening: Opening) -> Engine:
        return engine

    wall, cpu = time.perf_counter(), time.process_time()
    outcome = asyncio.run(run(plan, opener, Watcher(Console(file=io.StringIO()))))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert not outcome.missing_verdicts and len(outcome.scores) == 1, "the run is not whole"
    return {
        "conversations": conversations,
        "requests": engine.asked,
        "us_per_request": round(cpu / engine.asked * 1e6, 1),
        "engine_us_per_request": round(_own_share(), 1),
        "wall_s": round(wall, 1),
        "start_mb": round(began),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "store_mb": round((plan.out / STORE).stat().st_size / 1e6, 1),
    }


def _own_share(requests: int = 20_000) -> float:
    """Microseconds of a request that the engine of this benchmark takes itself, which count as ours above."""
    from vera_local.engine.seam import ChatMessage, Sampling

    engine = FakeEngine(Answers(), LIMITS, light=True)
    messages = tuple(ChatMessage("user", "word " * 45) for _ in range(16))

    async def ask() -> None:
        for seed in range(requests):
            await engine.generate(Request(messages, Sampling(0.0, 1.0, 200, seed)))

    began = time.process_time()
    asyncio.run(ask())
    return (time.process_time() - began) / requests * 1e6


def _flags(conversations: int, turns: int, folder: Path) -> dict[str, Any]:
    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"")
    profile = folder / "fake.toml"
    profile.write_text(PROFILE.format(folder=model))
    name = str(profile)
    return {
        "out": folder / "run", "personas": min(PERSONAS, conversations), "turns": turns,
        "repeats": max(1, conversations // PERSONAS), "simulator": name, "chatbot": name, "judge": [name],
    }  # fmt: skip


def apart(conversations: int, turns: int) -> dict[str, Any]:
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--one", str(conversations), "--turns", str(turns)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=1000, help="of the small run")
    parser.add_argument("--turns", type=int, default=30, help="messages of a conversation")
    parser.add_argument("--small", action="store_true", help="leave out the run of ten times as many")
    parser.add_argument("--one", type=int, help="one run of so many conversations in this very process")
    given = parser.parse_args()
    if given.one:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(given.one, given.turns, Path(folder))))
        return
    small = apart(given.conversations, given.turns)
    large = None if given.small else apart(10 * given.conversations, given.turns)
    told = {**small, "turns": given.turns, "personas": min(PERSONAS, given.conversations), "words": WORDS}
    if large is not None:
        told |= {"peak_mb_10x": large["peak_mb"], "us_per_request_10x": large["us_per_request"], "large": large}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
