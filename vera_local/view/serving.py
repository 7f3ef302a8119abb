"""A server on this machine's own address. Knows no page."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import uvicorn

from vera_local.errors import UserError
from vera_local.view.app import viewer
from vera_local.view.shelf import Shelf

HOST = "127.0.0.1"


class Server(uvicorn.Server):
    """Leaves signals to the command line."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """No signal is caught."""
        yield


def listening(port: int) -> socket.socket:
    """A socket on this port of this machine's own address, 0: on one that is free; UserError where it is taken."""
    if not 0 <= port <= 65535:
        raise UserError(f"--port {port}: ports are numbers from 1 to 65535; leave it out to take a free one")
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        raise UserError(f"--port {port}: {error.strerror}; name another one, or leave it out") from None
    listener.listen()
    return listener


def server(root: Path, listener: socket.socket) -> tuple[Server, str]:
    """A server of the runs in `root` that has not begun, and the address to open; UserError where there is no run."""
    token, port = secrets.token_urlsafe(32), listener.getsockname()[1]
    config = uvicorn.Config(
        viewer(root, token, port),
        # Its log would hold the token; what goes wrong is told on the page.
        access_log=False,
        log_level="error",
        lifespan="off",
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    single = Shelf(root).single
    start = f"runs/{quote(single, safe='')}/" if single is not None else ""
    return Server(config), f"http://{HOST}:{port}/{token}/{start}"


async def serve(ready: Server, listener: socket.socket) -> None:
    """Answer until cancelled."""
    await ready.serve([listener])


@contextlib.contextmanager
def opened_in_browser(address: str, folder: Path) -> Iterator[None]:
    """While it lasts, a page in `folder` leads to the address, and a browser has been asked to open that page.

    The page is for its owner alone: a browser that is given an address shows it to all users, as its command line.
    Nothing is done where there is no screen, for a browser for terminals would take this one.
    """
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        yield
        return
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix="view-", suffix=".html") as page:
        page.write(f'<!doctype html><title>vera_local</title><meta http-equiv="refresh" content="0; url={address}">\n')
        page.flush()
        threading.Thread(target=webbrowser.open, args=(Path(page.name).as_uri(),), daemon=True).start()
        yield
