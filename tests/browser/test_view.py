"""The viewer's pages in a browser: no error, no barrier, no way out, and by keyboard alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.browser.hostile import FLAG, HOSTILE, hostile
from tests.browser.serving import served
from tests.browser.window import Colours, Window, opened
from tests.made_run import made_run
from vera_local.report.html.text import visible

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGES = {
    "runs": "",
    "run": "runs/first/",
    "unrated-run": "runs/second/",
    "conversations": "runs/first/conversations",
    "search": "runs/first/conversations?words=HELPS&rating=Suboptimal",
    "conversation": "runs/first/conversations/4?words=helps",
}


@pytest.mark.parametrize(("width", "colours"), [(1280, "light"), (390, "dark")])
async def test_every_page_is_without_barriers_and_fits(
    browser: Browser, address: str, width: int, colours: Colours
) -> None:
    async with opened(browser, width=width, colours=colours) as window:
        for name, end in PAGES.items():
            await window.page.goto(address + end)
            assert await window.violations() == [], name
            assert not await window.wide(), name
            await window.keep(f"view-{name}-{width}-{colours}")


async def test_from_the_runs_to_a_turn_and_back_by_keyboard_alone(window: Window, address: str) -> None:
    page, press = window.page, window.page.keyboard.press
    await page.goto(address)
    await window.tab_to("a first")
    await press("Enter")
    await page.wait_for_url("**/runs/first/")
    await window.tab_to("a Conversations")
    await press("Enter")
    await page.wait_for_url("**/conversations")
    await window.tab_to("a Turns")
    await press("Enter")
    await page.wait_for_url("**sort=turns**")
    assert await page.locator("th[aria-sort=descending]").inner_text() == "Turns"
    await window.tab_to("a talk-1")
    await press("Enter")
    await page.wait_for_url("**/conversations/1?**")
    await window.tab_to("a turn *", 90)
    link = await page.evaluate("document.activeElement.getAttribute('href')")
    await press("Enter")
    assert await page.evaluate("':target' && document.querySelector(':target').id") == link.removeprefix("#")
    assert await page.locator(":target").evaluate("e => e.getBoundingClientRect().bottom <= innerHeight")
    # Where one goes on reading from: the first thing behind the turn.
    await press("Shift+Tab")
    assert await page.evaluate("!!document.activeElement.closest('#transcript')")


async def test_the_list_is_filtered_searched_and_turned_over(window: Window, address: str) -> None:
    page = window.page
    await page.goto(f"{address}runs/first/conversations")
    assert "1 to 50 of 60 conversations" in await page.locator("[role=status]").inner_text()
    await page.get_by_role("link", name="Next").click()
    assert "51 to 60 of 60" in await page.locator("[role=status]").inner_text()
    await page.get_by_label("Rating").select_option("Best Practice")
    await page.get_by_label("Said in a message").fill("NOTHING helps")
    await page.get_by_role("button", name="Show").click()
    rows = page.locator("tbody tr:not(.found)")
    found = page.locator("tbody tr.found mark")
    assert 0 < await rows.count() < 50
    assert await found.count() == await rows.count()
    assert {text.lower() for text in await found.all_inner_texts()} == {"nothing helps"}
    await rows.first.get_by_role("link").click()
    assert "nothing helps" in (await page.locator(":target mark").first.inner_text()).lower()


async def test_without_scripts_it_all_works(browser: Browser, address: str) -> None:
    async with opened(browser, scripts=False) as window:
        page = window.page
        await page.goto(f"{address}runs/first/conversations")
        await page.get_by_role("link", name="Uncertain").click()
        assert await page.locator("th[aria-sort=descending]").inner_text() == "Uncertain"
        await page.locator("tbody th a").first.click()
        await page.locator(".step a[href^='#turn-']").first.click()
        assert await page.locator(":target").count() == 1


async def test_a_run_at_work_is_followed(window: Window, address: str, run_folder: Path) -> None:
    """The progress is asked for again, and what comes is shown as text."""
    asked = []

    async def answer(route: object) -> None:
        asked.append(1)
        bars = [{"name": "<b>Conversations</b>", "done": len(asked), "of": 2, "text": f"{len(asked)} of 2 ended"}]
        told = {"live": len(asked) < 2, "stage": "at work" if len(asked) < 2 else "finished", "bars": bars}
        await route.fulfill(json=told)  # type: ignore[attr-defined]

    page = window.page
    await page.clock.install()
    await page.route("**/progress", answer)
    await page.route("**/runs/second/", _as_if_at_work)
    await page.goto(f"{address}runs/second/")
    await page.clock.run_for(3100)
    await page.get_by_text("1 of 2 ended").wait_for()
    assert not await page.locator("#reload").is_visible()
    await page.clock.run_for(3100)
    await page.get_by_text("2 of 2 ended").wait_for()
    assert await page.locator("#reload").is_visible()
    assert await page.locator("#bars .name").all_inner_texts() == ["<b>Conversations</b>"]
    await page.clock.run_for(60_000)
    assert len(asked) == 2


async def _as_if_at_work(route: object) -> None:
    answer = await route.fetch()  # type: ignore[attr-defined]
    body = (await answer.text()).replace('data-live="no"', 'data-live="yes"')
    await route.fulfill(response=answer, body=body)  # type: ignore[attr-defined]


async def test_what_was_said_is_text_and_does_nothing(browser: Browser, tmp_path: Path) -> None:
    made_run(tmp_path / "run", 6, 10, said=hostile, rationale=HOSTILE[1], chatbot=HOSTILE[0])
    async with served(tmp_path) as address, opened(browser) as window:
        page = window.page
        for end in ("", "runs/run/", "runs/run/conversations"):
            await page.goto(address + end)
        for searched in HOSTILE[:3]:
            await page.get_by_label("Said in a message").fill(searched[:60])
            await page.get_by_role("button", name="Show").click()
            assert await page.get_by_label("Said in a message").input_value() == searched[:60]
        for place in range(1, 7):
            await page.goto(f"{address}runs/run/conversations/{place}?words=harmed")
            shown = await page.locator("#transcript .said").evaluate_all("all => all.map(e => e.textContent)")
            assert shown == [visible(hostile(place, turn)) for turn in range(1, len(HOSTILE) + 1)]
            assert await page.evaluate(f"window.{FLAG}") is None
