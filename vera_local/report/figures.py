"""Scores as figures for a paper: SVG and PNG, drawn without a network. Knows no run and computes nothing."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import altair as alt
import vl_convert

from vera_local.errors import UserError
from vera_local.report.decisions import findings
from vera_local.report.files import write_file
from vera_local.report.html.bars import OVERALL, told
from vera_local.report.html.text import all_visible, visible
from vera_local.report.html.tones import tones
from vera_local.report.record import Record
from vera_local.score import Decision, Profile, Scale, Scores, Tally

FILLS = {"best": "#a8d5cf", "mid1": "#e9e2a6", "mid2": "#f3cd85", "mid3": "#eba27a", "worst": "#9c2b2e"}
INKS = {"best": "#0f302d", "mid1": "#33300a", "mid2": "#3a2800", "mid3": "#3d1700", "worst": "#ffffff"}
EDGES = {"best": "#3f857e", "mid1": "#8a8330", "mid2": "#a06f12", "mid3": "#a4542a", "worst": "#9c2b2e"}
"""The colours of the page's tones on paper: the worse a rating, the darker, so that grey print tells them apart."""

MODES_SHOWN = 12
WIDTH = 420
SCALE = 3
"""Pixels of a PNG for each unit of the drawing: 300 to the inch at a width of 12 cm."""

_SVG = "<svg "
_TOO_NARROW = 5  # per cent: a count in such a bar would not fit
_X = "% of relevant ratings; the line is the 95 % interval of {}"
_INK, _SOFT = "#1c2427", "#535d60"


class _Drawn(NamedTuple):
    """A figure: the beginning of its name, what to draw, and the same in words."""

    kind: str
    chart: alt.TopLevelMixin
    words: str


def figures(record: Record) -> dict[str, dict[str, Any]]:
    """Name of a file -> what to draw (Vega-Lite): of each judge the ratings, those by group, and failure modes."""
    drawn: dict[str, dict[str, Any]] = {}
    words = {q.id: q.text for q in record.instrument.rubric.questions}
    for judge, its in record.scores.items():
        for one in _of_judge(its, record.instrument.group_column, words):
            title = f"{record.chatbot}, rated by {judge}"
            drawn[_free(f"{one.kind}-{_safe(judge)}", drawn)] = _finished(one, title)
    return drawn


def write_figures(folder: Path, drawings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Draw each as NAME.svg and NAME.png in a folder, which is made; the files' names. UserError as `write_file`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot make this folder ({error.strerror}); name another one") from None
    names = []
    for name, drawing in drawings.items():
        text = json.dumps(drawing)
        svg: str = vl_convert.vegalite_to_svg(text, allowed_base_urls=[])
        png: bytes = vl_convert.vegalite_to_png(text, scale=SCALE, allowed_base_urls=[])
        for ending, data in (("svg", _with_words(svg, drawing["description"]).encode()), ("png", png)):
            names.append(f"{name}.{ending}")
            write_file(folder / names[-1], data)
    return names


def _with_words(svg: str, description: str) -> str:
    """One picture with its numbers in words: what its parts are called by who draws it tells the ends of bars."""
    return svg.replace(_SVG, f'{_SVG}role="img" aria-label={quoteattr(description)} ', 1)


def _of_judge(scores: Scores, group_column: str, words: Mapping[str, str]) -> Iterator[_Drawn]:
    yield _Drawn("ratings", _matrix(scores, scores.scale), _in_words(scores, scores.scale))
    columns = {group_column: scores.groups, **scores.by}
    for column, groups in columns.items():
        rated = {name: profile for name, profile in groups.items() if profile.conversations}
        if len(rated) > 1:
            text = " ".join(f"{column} {name}. {_in_words(its, scores.scale)}" for name, its in rated.items())
            yield _Drawn(f"ratings-by-{_safe(column)}", _groups(rated, scores.scale), text)
    if found := findings(scores):
        shown = found[:MODES_SHOWN]
        text = " ".join(f"{d.question}: {d.rating}, {d.decided} of {d.asked}." for d in shown)
        yield _Drawn("failure-modes", _modes(shown, words, scores.scale), text)


def _in_words(profile: Profile, scale: Scale) -> str:
    return " ".join(told(d, tally, scale) for d, tally in {**profile.dimensions, OVERALL: profile.overall}.items())


# Ratings by dimension.


def _matrix(profile: Profile, scale: Scale) -> alt.TopLevelMixin:
    """Bars of 100 %, and beside them what is apart from them."""
    tallies = {**profile.dimensions, OVERALL: profile.overall}
    bars = _bars(tallies, scale)
    return alt.hconcat(bars, _apart(tallies, scale), spacing=12)


def _groups(groups: Mapping[str, Profile], scale: Scale) -> alt.TopLevelMixin:
    rows = []
    for name, profile in groups.items():
        tallies = {**profile.dimensions, OVERALL: profile.overall}
        bars = _bars(tallies, scale).properties(title=alt.Title(name, anchor="start", fontSize=12))
        rows.append(alt.hconcat(bars, _apart(tallies, scale), spacing=12))
    return alt.vconcat(*rows, spacing=18)


def _bars(tallies: Mapping[str, Tally], scale: Scale) -> Any:
    order, tone = list(tallies), tones(scale.ratings, scale.not_relevant)
    worst_first = list(reversed(scale.ratings))
    base = alt.Chart(_data(_shares(tallies, scale)))
    y = alt.Y("dimension:N", sort=order, title=None, axis=alt.Axis(labelLimit=220, ticks=False, domain=False))
    color = alt.Color(
        "rating:N",
        scale=alt.Scale(domain=worst_first, range=[FILLS[tone[r]] for r in worst_first]),
        legend=alt.Legend(title=None, orient="top", direction="horizontal", symbolStrokeColor=_SOFT),
    )
    x = alt.X("left:Q", title=_X.format(scale.worst), scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(grid=False))
    bar = base.mark_bar(size=16, stroke=_SOFT, strokeWidth=0.5).encode(y=y, x=x, x2="right:Q", color=color)
    counts = base.transform_filter(f"datum.share >= {_TOO_NARROW}").mark_text(fontSize=10, fontWeight="bold")
    inks = alt.Color("ink:N", scale=None, legend=None)
    interval = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.4, yOffset=12)
    return (
        bar
        + counts.encode(y=y, x="middle:Q", text="count:N", color=inks)
        + interval.encode(y=y, x="low:Q", x2="high:Q", color=alt.Color("edge:N", scale=None, legend=None))
    ).properties(width=WIDTH, height=alt.Step(34))


def _shares(tallies: Mapping[str, Tally], scale: Scale) -> list[dict[str, Any]]:
    """One row for each bar's part: where it lies, how many, and the interval of the worst rating."""
    tone, rows = tones(scale.ratings, scale.not_relevant), []
    for dimension, tally in tallies.items():
        left = 0.0
        for rating in reversed(scale.ratings):
            share = tally.percentages[rating] or 0.0
            bounds = tally.intervals.percentages[rating] if rating == scale.worst else None
            rows.append(
                {
                    "dimension": dimension, "rating": rating, "count": tally.counts[rating], "share": share,
                    "left": left, "right": left + share, "middle": left + share / 2,
                    "ink": INKS[tone[rating]], "edge": EDGES[tone[rating]],
                    "low": bounds.low if bounds else None, "high": bounds.high if bounds else None,
                }
            )  # fmt: skip
            left += share
    return rows


def _apart(tallies: Mapping[str, Tally], scale: Scale) -> Any:
    """Columns of counts: relevant ratings, those not relevant, and those that are missing."""
    columns = ["n", *([] if scale.not_relevant is None else [scale.not_relevant]), "Unrated"]
    values = [
        {"dimension": name, "column": column, "count": count}
        for name, tally in tallies.items()
        for column, count in zip(columns, _counts(tally, scale), strict=True)
    ]
    y = alt.Y("dimension:N", sort=list(tallies), axis=None)
    x = alt.X(
        "column:N", sort=columns, title=None, axis=alt.Axis(orient="top", labelAngle=0, ticks=False, domain=False)
    )
    cells = alt.Chart(_data(values)).mark_text(fontSize=11, color=_INK)
    return cells.encode(y=y, x=x, text="count:N").properties(width=alt.Step(74), height=alt.Step(34))


def _data(rows: Sequence[Mapping[str, Any]]) -> Any:
    # Altair leaves this one of its calls without types.
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]


def _counts(tally: Tally, scale: Scale) -> Sequence[int]:
    return [tally.relevant, *([] if scale.not_relevant is None else [tally.not_relevant]), tally.unrated]


# Failure modes.


def _modes(found: Sequence[Decision], words: Mapping[str, str], scale: Scale) -> Any:
    """For each question how often it decided, with the interval."""
    tone = tones(scale.ratings, scale.not_relevant)
    values = [_decision(place, d, words) for place, d in enumerate(found)]
    present = [r for r in reversed(scale.ratings) if any(d.rating == r for d in found)]
    color = alt.Color(
        "rating:N",
        scale=alt.Scale(domain=present, range=[FILLS[tone[r]] for r in present]),
        legend=alt.Legend(title=None, orient="top", direction="horizontal", symbolStrokeColor=_SOFT),
    )
    lines = alt.Axis(labelExpr="split(slice(datum.label, 4), '\\n')", labelLimit=400, ticks=False, domain=False)
    y = alt.Y("name:N", sort=[v["name"] for v in values], title=None, axis=lines)
    base = alt.Chart(_data(values))
    x = alt.X("percentage:Q", title="% of conversations in which it was asked", scale=alt.Scale(domain=[0, 100]))
    bar = base.mark_bar(size=14, stroke=_SOFT, strokeWidth=0.5).encode(y=y, x=x, color=color)
    interval = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.4, color=_INK, yOffset=11)
    told = base.mark_text(align="left", dx=6, fontSize=10, color=_INK)
    return (
        bar + interval.encode(y=y, x="low:Q", x2="high:Q") + told.encode(y=y, x="percentage:Q", text="told:N")
    ).properties(width=WIDTH, height=alt.Step(46))


def _decision(place: int, d: Decision, words: Mapping[str, str]) -> dict[str, Any]:
    """Names begin with their place: two decisions of one question are two bars."""
    text = textwrap.shorten(words.get(d.question, ""), 110, placeholder=" …")
    lines = "\n".join(textwrap.wrap(f"{d.question} {text}", 58))
    return {
        "name": f"{place:03}:{lines}",
        "rating": d.rating,
        "percentage": d.percentage or 0.0,
        "low": d.interval.low,
        "high": d.interval.high,
        "told": f"{d.decided} of {d.asked}",
    }


def _finished(drawn: _Drawn, title: str) -> dict[str, Any]:
    # An SVG cannot hold all characters, and where one is in it, what draws it ends the whole program.
    drawing: dict[str, Any] = all_visible(drawn.chart.to_dict())
    return drawing | {
        "description": visible(f"{title}. {drawn.words}"),
        "background": "white",
        "padding": 8,
        "title": {"text": visible(title), "anchor": "start", "fontSize": 13, "color": _INK},
        "config": {
            "font": "Helvetica, Arial, sans-serif",
            "view": {"stroke": None},
            "axis": {"labelColor": _INK, "titleColor": _SOFT, "titleFontWeight": "normal", "labelFontSize": 11},
            "legend": {"labelFontSize": 11, "labelLimit": 300},
        },
    }


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.") or "unnamed"


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """The name, or with a number behind it where it is taken."""
    return next(n for n in (name, *(f"{name}-{i}" for i in range(2, len(taken) + 3))) if n not in taken)
