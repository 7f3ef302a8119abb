"""The style sheet's colours: enough contrast in light, in dark and on paper."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

STYLE = (files("vera_local.report") / "templates" / "style.css").read_text(encoding="utf-8")
TONES = ("best", "mid1", "mid2", "mid3", "worst")
BLOCKS = {
    "light": STYLE.partition(":root {")[2].partition("}")[0],
    "dark by the system": STYLE.partition(':root:not([data-theme="light"]) {')[2].partition("}")[0],
    "dark by choice": STYLE.partition(':root[data-theme="dark"] {')[2].partition("}")[0],
    "paper": STYLE.partition(':root[data-theme="dark"], :root:not([data-theme="light"]) {')[2].partition("}")[0],
}


def colours(block: str) -> dict[str, str]:
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})\b", BLOCKS[block]))
    return {**dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})\b", BLOCKS["light"])), **found}


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("block", BLOCKS)
def test_text_can_be_read(block: str) -> None:
    c = colours(block)
    grounds = ("paper", "surface", "sunk", "note-paper", "alert-paper", "user", "bot", "mark")
    pairs = [(ink, ground) for ground in grounds for ink in ("ink",)]
    pairs += [(ink, ground) for ink in ("soft", "link", "alert") for ground in ("paper", "surface", "sunk")]
    pairs += [("link", "mark"), ("soft", "user"), ("alert", "alert-paper"), *((f"{t}-ink", t) for t in TONES)]
    weak = {(ink, ground): contrast(c[ink], c[ground]) for ink, ground in pairs if contrast(c[ink], c[ground]) < 4.5}
    assert weak == {}


@pytest.mark.parametrize("block", BLOCKS)
def test_edges_of_bars_and_fields_stand_out(block: str) -> None:
    c = colours(block)
    lines = [*(f"{tone}-edge" for tone in TONES), "edge", "focus", "mark-edge"]
    weak = {line: contrast(c[line], c["surface"]) for line in lines if contrast(c[line], c["surface"]) < 3}
    assert weak == {}


def test_both_ways_to_the_dark_are_the_same() -> None:
    assert colours("dark by the system") == colours("dark by choice")
    assert set(re.findall(r"--[\w-]+", BLOCKS["dark by choice"])) > {"--paper", "--worst-ink"}


def test_ratings_differ_in_grey() -> None:
    c = colours("light")
    assert contrast(c["best"], c["worst"]) > 4 and contrast(c["mid2"], c["worst"]) > 4
    assert all(f"fill: url(#p-{tone})" in STYLE for tone in TONES if tone.startswith("mid")), (
        "those between have patterns"
    )
