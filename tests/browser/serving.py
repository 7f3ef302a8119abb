"""The viewer at work beside a test, in the same event loop. Knows no browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from vera_local.view.serving import listening, serve, server


@asynccontextmanager
async def served(root: Path) -> AsyncIterator[str]:
    """The address at which this folder's runs are served."""
    with listening(0) as listener:
        ready, address = server(root, listener)
        serving = asyncio.create_task(serve(ready, listener))
        try:
            yield address
        finally:
            ready.should_exit = True
            with suppress(asyncio.CancelledError):
                await serving
