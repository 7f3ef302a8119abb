"""The command line on a slow fake engine, in a process of its own, to be stopped: stoppable.py ARGUMENTS."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest import mock

from tests.cli.conftest import answer
from vera_local.cli import main
from vera_local.engine.fake import FakeEngine
from vera_local.engine.machine import Machine
from vera_local.engine.seam import Engine, Request
from vera_local.run import Opener, Opening, identities

PAUSE = 0.05


async def slowly(request: Request) -> str:
    await asyncio.sleep(PAUSE)
    return answer(request)


def opener(log: Path) -> Opener:
    async def open_engine(opening: Opening) -> Engine:
        return FakeEngine(slowly)

    return open_engine


if __name__ == "__main__":
    with (
        mock.patch("vera_local.cli.app.opener", opener),
        mock.patch.multiple(identities, locate=lambda profile: Path("/nowhere"), model_digests=lambda folder: {}),
        mock.patch("vera_local.run.host.this_machine", lambda: Machine("cpu", "2 CPU cores", 10**12, 0)),
    ):
        main()
