"""A browser window that notes what goes wrong in it. Knows no page."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Route

ARTIFACTS = Path(__file__).parents[1] / "artifacts"
"""Where screenshots are kept; git ignores it."""

AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
SERIOUS = ("serious", "critical")
OWN = ("file:", "http://127.0.0.1:")
"""What a page may ask for: itself."""

Colours = Literal["light", "dark"]


@dataclass
class Window:
    """`problems`: what the page complained of; `asked`: what it wanted from elsewhere."""

    page: Page
    problems: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def violations(self) -> list[str]:
        """What axe-core finds serious or critical, each with the first places where it is."""
        # As an isolated world's script it needs no leave of the page's policy.
        await self.page.evaluate(AXE)
        found: dict[str, Any] = await self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{v['id']} ({v['impact']}): {json.dumps([node['html'][:160] for node in v['nodes'][:3]])}"
            for v in found["violations"]
            if v["impact"] in SERIOUS
        ]

    async def keep(self, name: str) -> None:
        """A picture of the whole page."""
        ARTIFACTS.mkdir(exist_ok=True)
        await self.page.screenshot(path=ARTIFACTS / f"{name}.png", full_page=True)

    async def wide(self) -> bool:
        """Whether the page is wider than the window, so that one has to scroll sideways to read it."""
        return bool(await self.page.evaluate("document.documentElement.scrollWidth > innerWidth + 1"))

    async def focus(self) -> str:
        """What has the focus: its tag, and its id or else its text."""
        told: str = await self.page.evaluate(
            "(e => `${e.tagName.toLowerCase()} ${e.id || e.textContent.trim().slice(0, 60)}`)(document.activeElement)"
        )
        return told

    async def tab_to(self, told: str, most: int = 60) -> None:
        """Press Tab until the focus is there, as `focus` tells it; with a star at its end only the beginning counts."""
        for _ in range(most):
            await self.page.keyboard.press("Tab")
            at = await self.focus()
            if at == told or (told.endswith("*") and at.startswith(told[:-1])):
                return
        raise AssertionError(f"{told!r} cannot be reached with {most} times Tab; last: {await self.focus()}")


@asynccontextmanager
async def opened(
    browser: Browser, *, width: int = 1280, colours: Colours = "light", scripts: bool = True, offline: bool = False
) -> AsyncIterator[Window]:
    """A window of this width that reaches nothing but this machine; at its end nothing may have gone wrong in it."""
    context: BrowserContext = await browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=colours, java_script_enabled=scripts, offline=offline
    )
    window = Window(await context.new_page())
    await context.route("**/*", partial(_only_own, window))
    window.page.on("console", partial(_noted, window))
    window.page.on("pageerror", lambda error: window.problems.append(str(error)))
    window.page.on("dialog", lambda dialog: window.problems.append(f"dialog: {dialog.message}"))
    try:
        yield window
    finally:
        await context.close()
    assert window.problems == []
    assert window.asked == []


async def _only_own(window: Window, route: Route) -> None:
    if route.request.url.startswith(OWN):
        await route.continue_()
    else:
        window.asked.append(route.request.url)
        await route.abort()


def _noted(window: Window, said: ConsoleMessage) -> None:
    if said.type in ("error", "warning"):
        window.problems.append(f"{said.type}: {said.text}")
