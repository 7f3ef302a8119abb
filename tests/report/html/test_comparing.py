"""Comparisons as pages: every number is that of `compare --json`."""

from __future__ import annotations

import polars as pl

from tests.report.html.made import JUDGE, held
from tests.report.html.parsed import Parsed, at
from vera_local.report.html.comparing import ComparisonPage, part
from vera_local.report.html.render import comparison_html
from vera_local.score import Rating, Scale, ratings_frame
from vera_local.score.changes import changes
from vera_local.score.compare import compare

SCALE = Scale(("good", "fair", "bad"), "n/a", ("Warmth", "Care"), ("None", "High"))


def frame(often: int) -> pl.DataFrame:
    many = [held(n, ["a", "b"], answer=lambda p, q: "Yes" if p % often == 0 else "No") for n in range(1, 25)]
    return ratings_frame(
        Rating(h.conversation.id, h.conversation.persona, h.group, 1, JUDGE, r.dimension, r.rating)
        for h in many
        for r in h.ratings(JUDGE).values()
    )


def test_two_sides_beside_each_other() -> None:
    frames = {"one </script>": frame(2), "two": frame(5)}
    compared, changed = compare(frames, SCALE), changes(frames["one </script>"], frames["two"], SCALE)
    told = {"comparison": compared.model_dump(mode="json"), "changes": changed.model_dump(mode="json")}
    its = part("part-0", "Rated by x", compared, {"two": "chatbot y"}, ("comparison",), (("changes",), changed))
    page = Parsed.of(comparison_html(ComparisonPage("one and two", "Chatbots", (its,), ("a note",))))
    assert len(page.numbers) > 150
    for number in page.numbers:
        value = at(told, number.pointer)
        assert number.value == str(value)
        assert number.text.replace("\u00a0%", "") == (f"{value:.1f}" if isinstance(value, float) else str(value))
    plots = [n.attributes["aria-label"] for n in page.all("svg") if n.attributes.get("class") == "forest"]
    assert len(plots) == len(compared.differences)
    assert any(label.startswith("two, VERA score: ") and label.endswith("higher") for label in plots)
    ids = [node.attributes["id"] for node in page.nodes if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    assert all(node.attributes.get("aria-labelledby", ids[0]) in ids for node in page.nodes)
    assert [s.attributes for s in page.all("script")] == [{}]


def test_a_plot_lies_where_the_difference_does() -> None:
    compared = compare({"one": frame(2), "two": frame(5)}, SCALE)
    its = part("p", "t", compared, {}, ())
    for multiple in its.multiples:
        for apart in multiple.apart:
            assert apart.value is not None and apart.at is not None
            assert abs(apart.at - (50 + float(apart.value.value) / 2)) < 0.01
            assert apart.from_ is not None and apart.to is not None and 0 <= apart.from_ <= apart.to <= 100
