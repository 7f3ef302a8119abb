"""One browser for all tests, a page at a time. Where there is no browser, the tests say so and are passed over.

Everything runs in the session's event loop, as the browser's connection belongs to it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.browser.serving import served
from tests.browser.window import Window, opened
from tests.made_run import made_run

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(
            f"no browser: none of {', '.join(NAMES)} is installed (scripts/test.sh installs chromium by apt-get)"
        )
    # Chromium's sandbox does not start for root, as which containers run.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def window(browser: Browser) -> AsyncIterator[Window]:
    """A window at a desk, in light colours."""
    async with opened(browser) as window:
        yield window


@pytest_asyncio.fixture(loop_scope="session")
async def offline(browser: Browser) -> AsyncIterator[Window]:
    """The same without a network, for files."""
    async with opened(browser, offline=True) as window:
        yield window


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs: `first`, rated by two judges, and `second`, not rated."""
    root = tmp_path_factory.mktemp("runs")
    made_run(root / "first", 60, 6, judges=("strict", "kind"))
    made_run(root / "second", 3, 4, judges=(), score=False)
    return root


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def address(run_folder: Path) -> AsyncIterator[str]:
    """Where both runs are served."""
    async with served(run_folder) as address:
        yield address
