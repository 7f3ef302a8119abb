"""docs/scaling.md, held to what the program does."""

from __future__ import annotations

import re
from pathlib import Path

from vera_local.run.lanes import LANES
from vera_local.run.reviving import RESTARTS
from vera_local.run.sweep_file import read_sweep

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")


def test_the_sweep_on_the_page_is_sound(tmp_path: Path) -> None:
    (text,) = (
        block for block in re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) if "[sweep]" in block
    )
    file = tmp_path / "sweep.toml"
    file.write_text(text.replace("examples/", f"{ROOT}/examples/"), encoding="utf-8")
    points = read_sweep(file).points
    assert len(points) == 3 * 2 * (1 + 2)
    assert {point.bundle for point in points if point.simulator == "scripted"} == {"psychosis"}
    assert {point.chatbot for point in points} == {"small", "small-careful", "service"}
    assert f"up to {LANES} chatbots come in side by side" in PAGE
    assert RESTARTS == 2 and "up to\n  twice" in PAGE
