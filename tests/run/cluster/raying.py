"""What runs of these tests take into the processes of a Ray cluster: engines without a model."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from tests.answers import at_random
from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import Engine, Limits, Request
from vera_local.run import Opening
from vera_local.run.host import Opener

LIMITS = Limits(100_000, 40_000, 8, ridge=16)


def make_opener(log: Path) -> Opener:
    """Opens fake engines that take a moment for each reply."""

    async def handler(request: Request) -> str:
        await asyncio.sleep(0.01 * random.random())
        return at_random(request)

    async def opener(opening: Opening) -> Engine:
        return FakeEngine(handler, LIMITS)

    return opener
