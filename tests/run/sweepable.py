"""A whole sweep on a fake engine in a process of its own, to be killed: sweepable.py SWEEP.toml LOG.

What reaches an engine is written to LOG, as the engine's model and the request's seed, before it is answered.
"""

from __future__ import annotations

import asyncio
import io
import random
import sys
from pathlib import Path
from unittest import mock

from rich.console import Console

from tests.answers import options
from vera_local.engine.fake import FakeEngine
from vera_local.engine.machine import Machine
from vera_local.engine.seam import Engine, Request
from vera_local.run import Opening, Watcher, identities
from vera_local.run.sweep_file import read_sweep
from vera_local.run.sweeping import sweep

PAUSE = 0.004


def main(file: Path, log: Path) -> None:
    """Sweep until done or killed."""
    asked = log.open("a", buffering=1)

    async def opener(opening: Opening) -> Engine:
        async def handler(request: Request) -> str:
            asked.write(f"{opening.player.profile.name} {request.sampling.seed}\n")
            draw = random.Random(request.sampling.seed)
            await asyncio.sleep(PAUSE * draw.random() * 2)
            return f"message {draw.random()}" if request.pattern is None else draw.choice(options(request))

        return FakeEngine(handler)

    machine = Machine("cpu", "2 CPU cores", 10**12, 0)
    with (
        mock.patch.multiple(identities, locate=lambda profile: file, model_digests=lambda path: {}),
        mock.patch("vera_local.run.host.this_machine", lambda: machine),
    ):
        asyncio.run(sweep(read_sweep(file), opener, Watcher(Console(file=io.StringIO()))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
