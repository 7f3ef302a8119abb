"""Small official bundles on disk, to be spoilt in one place by each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bundle.upstream.shapes import CHECKOUT, FLAT, ReadRubric, write
from vera_local.bundle.problem import Findings
from vera_local.bundle.rubric import Rubric
from vera_local.bundle.source import Source
from vera_local.bundle.upstream import table
from vera_local.bundle.upstream.rubric_tsv import Rules
from vera_local.bundle.upstream.rubric_tsv import read as read_rubric


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    """A folder as data/ in versions 1.0 and 1.1, with the personas of 1.0."""
    return write(tmp_path / "data", FLAT)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of version 2.0 with two targets."""
    return write(tmp_path / "checkout", CHECKOUT)


@pytest.fixture
def rubric_of(tmp_path: Path) -> ReadRubric:
    """Read rubric rows, given as a file or as text; gives the rubric and what was found."""

    def read(source: Path | str, *, legacy: bool = False, strict: bool = False) -> tuple[Rubric, Findings]:
        if isinstance(source, str):
            source = write(tmp_path, {"rubric.tsv": source}) / "rubric.tsv"
        findings = Findings()
        found = table.read(Source.read(source), findings)
        assert found is not None
        rubric = read_rubric(found, "small", "1", Rules(legacy, strict), findings)
        assert rubric is not None
        return rubric, findings

    return read
