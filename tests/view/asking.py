"""The viewer, asked in this process as a browser would."""

from __future__ import annotations

from pathlib import Path

from starlette.testclient import TestClient

from vera_local.view.app import viewer

TOKEN, PORT = "the-token", 4711


def asking(root: Path, host: str = f"127.0.0.1:{PORT}") -> TestClient:
    """Asks the viewer of this folder, from the address that it was given."""
    return TestClient(viewer(root, TOKEN, PORT), base_url=f"http://{host}/{TOKEN}/", follow_redirects=False)
