"""Agreement as rows for programs and as Markdown for papers. Knows no file and computes no statistic."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import polars as pl

from vera_local.report.markdown import head, row
from vera_local.score import FEW
from vera_local.score.estimate import Sampling
from vera_local.score.intervals import Interval, Undefined
from vera_local.score.labels import Labels
from vera_local.score.raters import Question, Report

SCHEMA: Final = pl.Schema(
    {
        "section": pl.String(),
        "subject": pl.String(),
        "dimension": pl.String(),
        "statistic": pl.String(),
        "reference_rating": pl.String(),
        "rating": pl.String(),
        "n": pl.Int64(),
        "value": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "undefined": pl.String(),
        "interval_undefined": pl.String(),
    }
)
"""One row per number: coefficients, sensitivity and specificity, cells of confusion, what the majority left open."""

CATEGORY: Final = "category against the reference"
CONFUSION: Final = "confusion with the reference"
NO_MAJORITY: Final = "no majority"
KEYS: Final = ("subject", "dimension", "statistic", "reference_rating", "rating")
JSON_SCHEMA: Final = 1


def agreement_frame(report: Report, words: Sequence[str]) -> pl.DataFrame:
    """Every number of the report as a row of SCHEMA; `words` are the ratings in the order of the codes."""
    rows = [*_coefficients(report), *_rates(report), *_cells(report, words), *_unsettled(report)]
    return pl.DataFrame([{name: row.get(name) for name in SCHEMA} for row in rows], schema=SCHEMA)


def agreement_json(
    labels: Labels, question: Question, sampling: Sampling, report: Report, notes: Sequence[str]
) -> dict[str, Any]:
    """The report with what it is of and how it was made, ready for json.dumps."""
    return {
        "schema": JSON_SCHEMA,
        "items": len(labels.items),
        "clusters": len(set(labels.clusters)),
        "dimensions": list(labels.dimensions),
        "raters": list(labels.raters),
        "scale": list(labels.words.ordered),
        "off_scale": list(labels.words.apart),
        "panels": {name: list(raters) for name, raters in question.panels.items()},
        "reference": list(question.reference),
        "judged": list(question.judged),
        "bootstrap": {"draws": sampling.draws, "seed": sampling.seed, "level": sampling.level},
        "rows": json.loads(agreement_frame(report, labels.words.all).write_json()),
        "notes": list(notes),
    }


def agreement_markdown(labels: Labels, sampling: Sampling, report: Report, notes: Sequence[str]) -> str:
    """Tables of n, statistic and interval, one per section, and below them how they were made."""
    frame = agreement_frame(report, labels.words.all).filter(pl.col("section") != CONFUSION)
    sections = frame["section"].unique(maintain_order=True)
    tables = [_section(str(name), frame.filter(pl.col("section") == name), sampling) for name in sections]
    notes = [*how(labels, sampling), *notes]
    return "\n".join([*tables, *_matrices(report, labels), *(f"- {note}" for note in notes), ""])


def how(labels: Labels, sampling: Sampling) -> list[str]:
    """What was rated, what n is, and how the intervals were made."""
    ordered, apart = (", ".join(words) for words in (labels.words.ordered, labels.words.apart))
    scale = f"Ratings in their order: {ordered}" if ordered else f"Ratings, without an order: {apart}"
    off = f"; off the scale: {apart}" if ordered and apart else ""
    return [
        f"{scale}{off}.",
        f"n: items in a dimension that two raters or more rated. *: fewer than {FEW}.",
        f"Intervals are of {sampling.level:.0%}: bootstrap over {len(set(labels.clusters))} clusters of items, "
        f"{sampling.draws} draws, seed {sampling.seed}; Wilson's for a share of cases that are each of another "
        "cluster, or that is the same in all draws (each cluster then counts once).",
    ]


def counted(n: int) -> str:
    """A count, marked where it is small."""
    return f"{n}*" if n < FEW else str(n)


def _coefficients(report: Report) -> Iterator[dict[str, Any]]:
    for f in report.findings:
        yield {
            "section": f.section.value,
            "subject": f.subject,
            "dimension": f.dimension,
            "statistic": f.statistic,
            "n": f.n,
            **_number(f.value, f.interval),
        }


def _rates(report: Report) -> Iterator[dict[str, Any]]:
    for c in report.confused:
        for rate in c.rates:
            yield {
                "section": CATEGORY,
                "subject": c.subject,
                "dimension": c.dimension,
                "statistic": rate.name,
                "reference_rating": rate.word,
                "n": rate.n,
                **_number(rate.value, rate.interval),
            }


def _cells(report: Report, words: Sequence[str]) -> Iterator[dict[str, Any]]:
    for c in report.confused:
        for line, reference in enumerate(words):
            for column, rating in enumerate(words):
                yield {
                    "section": CONFUSION,
                    "subject": c.subject,
                    "dimension": c.dimension,
                    "statistic": "count",
                    "reference_rating": reference,
                    "rating": rating,
                    "n": int(c.counts[line, column]),
                }


def _unsettled(report: Report) -> Iterator[dict[str, Any]]:
    for u in report.unsettled:
        counts = {"split": u.split, "single rating": u.single, "no rating": u.unrated}
        for name, n in counts.items():
            yield {"section": NO_MAJORITY, "dimension": u.dimension, "statistic": name, "n": n}


def _number(value: float | Undefined, interval: Interval | Undefined) -> dict[str, Any]:
    told: dict[str, Any] = {"undefined": value.reason} if isinstance(value, Undefined) else {"value": float(value)}
    if isinstance(interval, Interval):
        return told | {"low": interval.low, "high": interval.high}
    return told | {"interval_undefined": interval.reason}


def _section(name: str, frame: pl.DataFrame, sampling: Sampling) -> str:
    keys = [key for key in KEYS if frame[key].null_count() < frame.height]
    numbers = ["n"] if name == NO_MAJORITY else ["n", "Value", f"{sampling.level:.0%} interval"]
    columns = [*(key.replace("_", " ").capitalize() for key in keys), *numbers]
    written = _count if name == NO_MAJORITY else _written
    rows = [row([*(its[key] or "" for key in keys), *written(its)]) for its in frame.iter_rows(named=True)]
    return _titled(name, [*head(columns, len(keys)), *rows])


def _matrices(report: Report, labels: Labels) -> list[str]:
    """The confusion of each rater, all dimensions together; rows are the reference."""
    words, last = labels.words.all, report.confused[-1].dimension if report.confused else ""
    return [
        _titled(f"{CONFUSION}: {c.subject}, {last}", [*head(["Reference", *words]), *_counts(words, c.counts.tolist())])
        for c in report.confused
        if c.dimension == last
    ]


def _counts(words: Sequence[str], counts: Sequence[Sequence[int]]) -> Iterator[str]:
    for word, its in zip(words, counts, strict=True):
        yield row([word, *map(str, its)])


def _titled(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"### {title[0].upper()}{title[1:]}".replace("\n", " "), "", *lines, ""])


def _count(its: dict[str, Any]) -> list[str]:
    return [str(its["n"])]


def _written(its: dict[str, Any]) -> list[str]:
    if its["value"] is None:
        return [counted(its["n"]), f"undefined: {its['undefined']}", ""]
    none = f"undefined: {its['interval_undefined']}"
    interval = none if its["low"] is None else f"{its['low']:.3f} to {its['high']:.3f}"
    return [counted(its["n"]), f"{its['value']:.3f}", interval]
