"""A whole run on a fake engine in a process of its own, to be killed: killable.py FOLDER LOG [CHATBOT].

Every request that reaches the engine is written to LOG, as its seed, before it is answered. CHATBOT is a table in JSON.
"""

from __future__ import annotations

import asyncio
import io
import json
import random
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from rich.console import Console

from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import Engine, Request
from vera_local.run import Opening, Watcher, identities, load_config, make_plan, run

JUDGES = ("smollm2-135m-instruct", "second")
FLAGS = {"personas": 4, "turns": 6, "seed": 7, "judge": [JUDGES[0], f"{JUDGES[1]}@http://127.0.0.1:9/v1"]}
PAUSE = 0.004


def options(request: Request) -> list[str]:
    """The option texts of a constrained request."""
    assert request.pattern is not None
    return choices(request.pattern)


def choices(pattern: str) -> list[str]:
    """The option texts of a constraint."""
    return [o.replace("\\", "") for o in pattern.strip("()$").split("|")]


def main(folder: Path, log: Path, chatbot: dict[str, Any]) -> None:
    """Run until done or killed."""
    asked = log.open("a", buffering=1)

    async def handler(request: Request) -> str:
        asked.write(f"{request.sampling.seed}\n")
        draw = random.Random(request.sampling.seed)
        await asyncio.sleep(PAUSE * draw.random() * 2)
        return f"message {draw.random()}" if request.pattern is None else draw.choice(options(request))

    async def opener(opening: Opening) -> Engine:
        return FakeEngine(handler)

    plan = make_plan(load_config(None, FLAGS | chatbot | {"out": folder}))
    with mock.patch.multiple(identities, locate=lambda profile: folder, model_digests=lambda path: {}):
        asyncio.run(run(plan, opener, Watcher(Console(file=io.StringIO()))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), {"chatbot": json.loads(sys.argv[3])} if sys.argv[3:] else {})
