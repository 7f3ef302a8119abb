"""A folder with two runs, and the viewer of it, asked in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.made_run import made_run
from tests.view.asking import asking


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`first`, rated by two judges, and `second`, not rated."""
    root = tmp_path_factory.mktemp("runs")
    made_run(root / "first", 70, 6, judges=("strict", "kind"))
    made_run(root / "second", 3, 4, judges=(), score=False)
    return root


@pytest.fixture
def client(root: Path) -> TestClient:
    return asking(root)
