"""The pages' addresses. Thin: each reads what was asked for, and hands over to what a page shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from vera_local.errors import UserError
from vera_local.report.html.render import Served, served
from vera_local.run.viewed import advance_of
from vera_local.view.asked import Asked
from vera_local.view.guard import Guard
from vera_local.view.listing import list_page
from vera_local.view.overview import progress_of, run_lines, run_page
from vera_local.view.reader import reading_page
from vera_local.view.shelf import Shelf

THEME = ("theme.js",)
Show = Callable[[Request], Response]


def viewer(root: Path, token: str, port: int) -> ASGIApp:
    """The server of a run, or of the runs in a folder; UserError where there is none.

    What it answers is read when it is asked, in a thread of its own, and nothing of it is kept but bundles.
    """
    shown = _Shown(Shelf(root), root, f"/{token}/")
    app = Starlette(
        routes=[
            Route("/{token}", shown.home),
            Route("/{token}/", shown.told(shown.runs)),
            Route("/{token}/runs/{run}/", shown.told(shown.run)),
            Route("/{token}/runs/{run}/progress", shown.told(shown.progress)),
            Route("/{token}/runs/{run}/conversations", shown.told(shown.conversations)),
            Route("/{token}/runs/{run}/conversations/{place:int}", shown.told(shown.conversation)),
        ],
        exception_handlers={404: shown.nothing},
    )
    return Guard(app, token, port)


class _Shown:
    def __init__(self, shelf: Shelf, root: Path, home: str) -> None:
        self._shelf = shelf
        self._root = root
        self._home = home

    def home(self, request: Request) -> Response:
        return RedirectResponse(self._home)

    def told(self, show: Show) -> Show:
        """Tells what a user can cause as a page of its own."""

        def showing(request: Request) -> Response:
            try:
                return show(request)
            except UserError as error:
                return self._problem("This cannot be shown", str(error), 400)
            except (KeyError, FileNotFoundError):
                return self._problem("There is no such page", "It may have been there: see the list of runs.", 404)

        return showing

    def nothing(self, request: Request, error: Exception) -> Response:
        return self._problem("There is no such page", "No page has this address.", 404)

    def runs(self, request: Request) -> Response:
        return _page("view/runs.html", root=str(self._root.resolve()), lines=list(run_lines(self._shelf.runs())))

    def run(self, request: Request) -> Response:
        page = run_page(self._shelf.run(request.path_params["run"]), request.query_params.get("judge"))
        return _page("view/run.html", scripts=(*THEME, "view/live.js"), page=page, record=page.record)

    def progress(self, request: Request) -> Response:
        return JSONResponse(asdict(progress_of(advance_of(self._shelf.folder(request.path_params["run"])))))

    def conversations(self, request: Request) -> Response:
        name = request.path_params["run"]
        page = list_page(self._shelf.run(name), Asked.of(request.query_params))
        return _page("view/conversations.html", page=page, name=name)

    def conversation(self, request: Request) -> Response:
        name, place = request.path_params["run"], request.path_params["place"]
        page = reading_page(self._shelf.run(name), place, Asked.of(request.query_params))
        return _page("view/conversation.html", page=page, name=name)

    def _problem(self, title: str, reason: str, status: int) -> Response:
        return _page("view/problem.html", status, title=title, reason=reason, home=self._home)


def _page(template: str, status: int = 200, *, scripts: tuple[str, ...] = THEME, **content: Any) -> Response:
    page: Served = served(template, scripts, **content)
    body = page.html.encode(errors="backslashreplace")
    return HTMLResponse(body, status, headers={"Content-Security-Policy": page.policy})
