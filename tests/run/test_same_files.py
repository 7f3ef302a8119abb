"""A fixed run leaves the very files that it left before they were written as they are read."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from tests.run.foreign import make_foreign_bundle
from vera_local.engine.seam import EngineError, Request
from vera_local.run import Plan, Watcher, run

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]

DIGESTS = {
    "conversations.jsonl": "acc24bf1399fdd48",
    "questions.csv": "cbba01e6dee907dc",
    "results.csv": "418cd7383063851a",
    "simulation.json": "56206867ce2ebcde",
    "verdicts.csv": "c33a8065dcf04627",
}
"""File -> the beginning of its sha256, of a run by the code that held a whole run in memory."""


def answer(request: Request) -> str:
    """From the request's seed alone: odd characters, messages that cannot stand, failures, any option."""
    draw = random.Random(request.sampling.seed)
    if request.sampling.seed % 31 == 5:
        raise EngineError('an "odd"\nfailure')
    if request.pattern is None:
        text = " ".join(draw.choices(['是,"', "我\u2028们", "a\r\nb", "😀", "累", "睡 不 着"], k=draw.randint(1, 9)))
        return f"[9] chatbot: {text}" if draw.random() < 0.3 else text
    if request.pattern.startswith("(none|"):
        return draw.choice(["none", "2", "4, 2", "77"])
    return draw.choice([o.replace("\\", "") for o in request.pattern.strip("()$").split("|")])


async def test_a_run_leaves_the_files_that_it_always_left(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    judges = [
        {"model": "smollm2-135m-instruct", "repeats": 3},
        {"model": "b", "url": "http://127.0.0.1:9/v1", "mode": "reason"},
    ]
    bundle = str(make_foreign_bundle(tmp_path / "bundle"))
    plan = make(bundle=bundle, personas=1, repeats=40, turns=6, judge=judges, check_personas=True)
    await run(plan, answering(answer), watcher)
    texts = ("conversations.jsonl", "verdicts.csv", "results.csv", "questions.csv", "simulation.json")
    found = {name: hashlib.sha256((plan.out / name).read_bytes()).hexdigest()[:16] for name in texts}
    assert found == DIGESTS
    verdicts = pl.read_parquet(plan.out / "verdicts.parquet")
    assert set(verdicts["state"]) == {"answered", "error"} and verdicts["doubt"].str.len_chars().max()
    for name in ("verdicts", "results", "questions"):
        frame = pl.read_parquet(plan.out / f"{name}.parquet")
        assert pl.read_csv(plan.out / f"{name}.csv", schema=frame.schema).equals(frame)
