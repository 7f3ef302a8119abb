"""A report in a browser, from disk and without a network: no error, no barrier, and by keyboard alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.browser.hostile import FLAG, HOSTILE, hostile
from tests.browser.window import Colours, Window, opened
from tests.made_run import Said, made_run, words
from vera_local.report.html.page import Choice, page
from vera_local.report.html.render import report_html
from vera_local.report.html.text import visible
from vera_local.run.evaluate import bundle_of_run
from vera_local.run.reported import record_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


def written(folder: Path, conversations: int, turns: int, judges: Sequence[str], said: Said = words) -> Path:
    """The report of a run, as a file."""
    made_run(folder, conversations, turns, judges=judges, said=said, rationale=said(1, 1), score=False)
    file = folder / "report.html"
    file.write_text(report_html(page(record_of(folder, bundle_of_run(folder)), Choice())), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("report") / "run", 14, 6, ("strict", "kind"))


@pytest.mark.parametrize(("width", "colours"), [(1280, "light"), (390, "dark")])
async def test_a_report_is_without_barriers_and_fits(
    browser: Browser, report: Path, width: int, colours: Colours
) -> None:
    async with opened(browser, width=width, colours=colours, offline=True) as window:
        await window.page.goto(report.as_uri())
        assert await window.violations() == []
        assert not await window.wide()
        await window.keep(f"report-{width}-{colours}")
        await window.page.locator("#table a[data-open]").last.click()
        assert await window.violations() == []
        await window.keep(f"report-conversation-{width}-{colours}")


async def test_sorting_filtering_reading_and_evidence_by_keyboard_alone(offline: Window, report: Path) -> None:
    page, press = offline.page, offline.page.keyboard.press
    await page.goto(report.as_uri())
    rows = page.locator("#table tbody tr:not([hidden])")

    await offline.tab_to("input f-search", 90)
    await page.keyboard.type("talk-1")
    assert await rows.count() == 6
    assert await page.locator("#shown").inner_text() == "6 of 14 conversations shown"
    await offline.tab_to("button Conversation")
    for first in ("talk-1", "talk-14"):
        await press("Enter")
        assert await rows.first.locator("th").inner_text() == first
    await offline.tab_to("a talk-14")
    await press("Enter")
    assert await offline.focus() == "h2 reader-title"

    await offline.tab_to("a turn *", 90)
    turn = (await page.evaluate("document.activeElement.getAttribute('href')")).removeprefix("#")
    await press("Enter")
    assert await offline.focus() == f"li {turn}"
    assert "evidence for" in await page.locator(f"#{turn} .tag").inner_text()
    await press("Escape")
    assert await offline.focus() == "a talk-14"


async def test_what_was_said_is_text_and_does_nothing(offline: Window, tmp_path: Path) -> None:
    await offline.page.goto(written(tmp_path / "run", 6, 10, ("strict",), hostile).as_uri())
    for link in await offline.page.locator("#table a[data-open]").all():
        await link.click()
        place = int((await link.get_attribute("href") or "").removeprefix("#c"))
        shown = await offline.page.locator("#turns .said").evaluate_all("all => all.map(e => e.textContent)")
        assert shown == [visible(hostile(place, turn)) for turn in range(1, len(HOSTILE) + 1)]
        for details in await offline.page.locator("#path details summary").all():
            await details.click()
        await offline.page.locator("#reader-close").click()
    assert await offline.page.evaluate(f"window.{FLAG}") is None


async def test_the_report_of_a_large_run_is_under_15_mb_and_opens(offline: Window, tmp_path: Path) -> None:
    file = written(tmp_path / "run", 200, 30, ("strict",))
    assert file.stat().st_size < 15_000_000
    await offline.page.goto(file.as_uri())
    await offline.page.locator("#table a[data-open]").last.click()
    assert await offline.page.locator("#turns > li").count() == 30
