"""How large a report is and how soon it can be used, and how soon the viewer of a large run shows its pages; one JSON
object on the last line.

The report is of 200 conversations of 30 turns, the run that is viewed of 2,000; both are made of nothing. A page counts
as there when the browser has loaded it, a report can be used when a click has sorted its table. Needs chromium.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.made_run import made_run
from vera_local.report.html.page import Choice, page
from vera_local.report.html.render import report_html
from vera_local.run.evaluate import bundle_of_run
from vera_local.run.reported import record_of
from vera_local.view.serving import listening, serve, server

PAGES = {
    "runs": "",
    "run": "runs/large/",
    "conversations": "runs/large/conversations",
    "filtered": "runs/large/conversations?rating=Suboptimal&uncertain=1&sort=uncertain&down=1",
    "searched": "runs/large/conversations?words=nothing+helps",
    "conversation": "runs/large/conversations/1000",
}


async def loaded(tab: Page, address: str) -> float:
    """Seconds until the browser has loaded a page."""
    began = time.perf_counter()
    await tab.goto(address)
    return time.perf_counter() - began


async def report(browser: Browser, folder: Path, conversations: int, turns: int) -> dict[str, Any]:
    """A report as a file."""
    made_run(folder, conversations, turns, score=False)
    began = time.perf_counter()
    file = folder / "report.html"
    file.write_text(report_html(page(record_of(folder, bundle_of_run(folder)), Choice())), encoding="utf-8")
    wrote = time.perf_counter() - began
    tab = await browser.new_page()
    began = time.perf_counter()
    there = await loaded(tab, file.as_uri())
    await tab.locator("#table th button").nth(1).click()
    await tab.locator("#table th[aria-sort]").wait_for()
    used = time.perf_counter() - began
    await tab.close()
    return {"bytes": file.stat().st_size, "write_s": wrote, "load_s": there, "interactive_s": used}


async def viewed(browser: Browser, folder: Path, conversations: int, turns: int) -> dict[str, Any]:
    """The viewer's pages, the first time and once more."""
    made_run(folder / "large", conversations, turns, judges=("strict", "kind"))
    with listening(0) as listener:
        ready, address = server(folder, listener)
        serving = asyncio.create_task(serve(ready, listener))
        tab = await browser.new_page()
        first = {name: await loaded(tab, address + end) for name, end in PAGES.items()}
        again = {name: await loaded(tab, address + end) for name, end in PAGES.items()}
        ready.should_exit = True
        await serving
    return {"first_s": first, "again_s": again}


async def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Both."""
    path = shutil.which("chromium")
    if path is None:
        sys.exit("bench_report: chromium is not installed")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as name:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=path, args=arguments)
            made = await report(browser, Path(name) / "run", options.conversations, options.turns)
            seen = await viewed(browser, Path(name) / "runs", options.viewed, options.turns)
            await browser.close()
    return {
        "conversations": options.conversations, "viewed": options.viewed, "turns": options.turns,
        "load_average": os.getloadavg()[0], "cpus": os.cpu_count(), "report": made, "view": seen,
    }  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench_report.py", description=__doc__)
    parser.add_argument("--conversations", type=int, default=200, help="of the report")
    parser.add_argument("--viewed", type=int, default=2000, help="conversations of the run that is viewed")
    parser.add_argument("--turns", type=int, default=30, help="of each conversation")
    print(json.dumps(asyncio.run(measured(parser.parse_args()))))


if __name__ == "__main__":
    main()
