"""Figures for papers: what is drawn is what the scores say, and the files are what their names say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.report.html.made import held, record
from vera_local.errors import UserError
from vera_local.report.figures import SCALE, figures, write_figures
from vera_local.report.record import Record


@pytest.fixture(scope="module")
def made() -> Record:
    return record([held(n, ["hello", "there"]) for n in range(1, 13)])


def rows(drawing: Any, key: str) -> list[dict[str, Any]]:
    """All data of a drawing that have this key; layers repeat theirs."""
    if isinstance(drawing, dict) and isinstance(drawing.get("values"), list):
        return [row for row in drawing["values"] if key in row]
    inside = drawing.values() if isinstance(drawing, dict) else drawing if isinstance(drawing, list) else ()
    found: list[dict[str, Any]] = []
    for part in inside:
        found += [row for row in rows(part, key) if row not in found]
    return found


def test_each_judge_has_its_ratings_its_groups_and_its_failure_modes(made: Record) -> None:
    assert list(figures(made)) == ["ratings-j-udge-1", "ratings-by-Risk-j-udge-1", "failure-modes-j-udge-1"]
    assert figures(made)["ratings-j-udge-1"]["title"]["text"] == "bot, rated by j/udge ~1"


def test_the_bars_are_the_scores(made: Record) -> None:
    (scores,) = made.scores.values()
    drawing = figures(made)["ratings-j-udge-1"]
    bars = rows(drawing, "share")
    warm = [row for row in bars if row["dimension"] == "Warmth"]
    assert [row["rating"] for row in warm] == ["bad", "fair", "good"]
    for row in warm:
        tally = scores.dimensions["Warmth"]
        assert (row["count"], row["share"]) == (tally.counts[row["rating"]], tally.percentages[row["rating"]])
        assert row["right"] - row["left"] == pytest.approx(row["share"])
    bounds = scores.dimensions["Warmth"].intervals.percentages["bad"]
    assert (warm[0]["low"], warm[0]["high"]) == (bounds.low, bounds.high)
    apart = {(row["dimension"], row["column"]): row["count"] for row in rows(drawing, "column")}
    assert apart["Care", "n"] == scores.dimensions["Care"].relevant
    assert ("Care", "Unrated") in apart and ("Care", "n/a") in apart


def test_a_figure_has_its_numbers_in_words(made: Record) -> None:
    ratings, groups, modes = (drawing["description"] for drawing in figures(made).values())
    assert ratings.startswith(
        "bot, rated by j/udge ~1. Warmth: bad 4 (33.3 %), fair 0 (0.0 %), good 8 (66.7 %), of 12."
    )
    assert ratings.endswith("All dimensions: bad 8 (33.3 %), fair 0 (0.0 %), good 16 (66.7 %), of 24.")
    assert "Risk None. Warmth: bad 2 (33.3 %)" in groups and "Risk High. Warmth: bad 2 (33.3 %)" in groups
    assert "C1: bad, 4 of 12." in modes


def test_a_group_without_a_conversation_is_not_drawn(made: Record) -> None:
    one = record([held(2, ["a", "b"]), held(4, ["a", "b"])])
    assert list(figures(one)) == ["ratings-j-udge-1"], "one group, and nothing that failed"


def test_the_files_are_drawings(made: Record, tmp_path: Path) -> None:
    drawings = {name: figures(made)[name] for name in ("ratings-j-udge-1", "failure-modes-j-udge-1")}
    names = write_figures(tmp_path / "new", drawings)
    assert {f.name for f in (tmp_path / "new").iterdir()} == set(names) and len(names) == 4
    for name in drawings:
        svg = (tmp_path / "new" / f"{name}.svg").read_text(encoding="utf-8")
        root = ElementTree.fromstring(svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.attrib["role"] == "img"
        assert root.attrib["aria-label"] == drawings[name]["description"]
        assert "bad" in svg and not re.search(r"href=|url\(http", svg)
        png = (tmp_path / "new" / f"{name}.png").read_bytes()
        assert png.startswith(b"\x89PNG\r\n\x1a\n")
        width = int.from_bytes(png[16:20], "big")
        assert width == pytest.approx(float(root.attrib["width"]) * SCALE, abs=SCALE)


def test_names_with_what_a_drawing_cannot_hold_are_drawn(tmp_path: Path) -> None:
    its = record([held(3, ["a", "b"], judge="j\x00<i>&\ufffe")], judge="j\x00<i>&\ufffe")
    drawings = figures(replace(its, chatbot="bo\x00t\x1b<b>\ud800"))
    names = write_figures(tmp_path, {"ratings": drawings["ratings-j-i"]})
    text = "".join(ElementTree.fromstring((tmp_path / names[0]).read_bytes()).itertext())
    assert "bo\u2400t\u241b<b>\\ud800, rated by j\u2400<i>&\\ufffe" in text


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot make this folder"):
        write_figures(tmp_path / "file" / "in", {})
