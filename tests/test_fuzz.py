"""A few hundred of the cases of scripts/fuzz.py, which takes 10,000 by itself."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
KINDS = (
    *("config", "chatbot", "profile", "bundle", "vignettes", "suite", "text", "jsonl", "csv", "labels"),
    *("model", "manifest", "results", "parquet", "store", "rows"),
)


@pytest.fixture
def fuzz(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module("fuzz")


def test_every_loader_answers_or_says_what_is_wrong(fuzz: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.fuzz(200, seed=1) == []
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*KINDS]


def test_files_that_nobody_changed_are_answered(
    fuzz: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fuzz, "mutated", lambda data, draw: data)

    assert fuzz.fuzz(16, seed=0) == []
    assert "refused" not in capsys.readouterr().out


def test_anything_else_that_is_raised_is_found(fuzz: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(file: Path) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(fuzz, "find", broken)

    assert [case.splitlines()[-1] for case in fuzz.fuzz(3, seed=0, kind="text")] == ["KeyError: 'lost'"] * 3
