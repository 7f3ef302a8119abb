"""Agreement as tables and lines for the terminal. Computes nothing and prints nothing itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from vera_local.report.agreement import counted, how
from vera_local.report.grid import Grid, Row
from vera_local.score import agreement as a
from vera_local.score.estimate import Sampling
from vera_local.score.intervals import Undefined
from vera_local.score.labels import Labels
from vera_local.score.raters import POOLED, WITHIN, Confused, Finding, Question, Report, Section, pair_name
from vera_local.score.rates import SENSITIVITY, Rate

SHOWN: Final = 8
"""Raters up to which their pairs are shown as a matrix."""
CONFUSED: Final = 4
"""Raters whose confusion with the reference is shown."""
UNDEFINED: Final = "undefined"

_AMONG = {
    a.PERCENT: "agreement", a.KAPPA: "kappa", a.FLEISS: "Fleiss' kappa", a.ALPHA: "alpha",
    a.ALPHA_ORDINAL: "ordinal alpha", a.AC1: "AC1",
}  # fmt: skip
_AGAINST = {a.PERCENT: "agreement", a.KAPPA: "kappa", a.KAPPA_LINEAR: "linear kappa", a.AC1: "AC1"}

Cells = Mapping[tuple[str, str, str], Finding]
"""(subject, dimension, statistic) -> finding, of one section."""


def agreement_blocks(
    labels: Labels, question: Question, sampling: Sampling, report: Report, notes: Sequence[str]
) -> Iterator[RenderableType]:
    """Tables, each under a title, then sentences."""
    yield from _among(question, report)
    yield from _pairs(question, report)
    if question.reference:
        yield from _against(question, report)
        yield from _confusion(labels, question, report)
    yield Text("\n".join(("", *_unsettled(report), *how(labels, sampling), *_reasons(report), *notes)))


def reference_name(question: Question) -> str:
    """The reference in words."""
    first, *others = question.reference
    return f"the majority of {len(question.reference)} raters{_listed(question.reference)}" if others else first


def _among(question: Question, report: Report) -> Iterator[RenderableType]:
    cells = _cells(report, Section.AMONG)
    for panel, raters in question.panels.items():
        dimensions = list(dict.fromkeys(dimension for subject, dimension, _ in cells if subject == panel))
        named = {s.name: title for s, title in _AMONG.items() if any((panel, d, s.name) in cells for d in dimensions)}
        if named:
            yield _title(f"Among {len(raters)} {panel}{_listed(raters)}")
            yield _grid(
                "Dimension", {d: [cells.get((panel, d, n)) for n in named] for d in dimensions}, [*named.values()]
            )


def _listed(raters: Sequence[str]) -> str:
    return f": {', '.join(raters)}" if len(raters) <= SHOWN else ""


def _pairs(question: Question, report: Report) -> Iterator[RenderableType]:
    cells = _cells(report, Section.PAIR)
    pooled = [f for f in cells.values() if f.statistic == a.KAPPA.name and f.dimension != WITHIN]
    raters = list(dict.fromkeys(rater for panel in question.panels.values() for rater in panel))
    if len(raters) < 3:
        return
    yield _title("Cohen's kappa of each pair, all dimensions together")
    if len(raters) > SHOWN:
        yield Text("\n".join(_summary(pooled)))
        return
    found = {f.subject: f for f in pooled}
    rows = [
        Row(first, [*([""] * place), *(_two(found[pair_name(first, second)]) for second in raters[place + 1 :])])
        for place, first in enumerate(raters[:-1])
    ]
    yield Grid("", raters[1:], rows)


def _summary(pooled: Sequence[Finding]) -> list[str]:
    defined = sorted((f.value, f.subject) for f in pooled if not isinstance(f.value, Undefined))
    if not defined:
        return [f"{UNDEFINED} for all of {len(pooled)} pairs"]
    (low, lowest), (high, highest) = defined[0], defined[-1]
    mean = sum(value for value, _ in defined) / len(defined)
    return [
        f"{len(pooled)} pairs, {len(pooled) - len(defined)} of them {UNDEFINED}; mean {mean:.3f}",
        f"lowest {low:.3f}: {lowest}",
        f"highest {high:.3f}: {highest}",
    ]


def _against(question: Question, report: Report) -> Iterator[RenderableType]:
    cells = _cells(report, Section.REFERENCE)
    subjects = list(dict.fromkeys(subject for subject, _, _ in cells))
    dimensions = list(dict.fromkeys(dimension for _, dimension, _ in cells))
    whole = POOLED if POOLED in dimensions else dimensions[0]
    named = {s.name: title for s, title in _AGAINST.items() if (subjects[0], whole, s.name) in cells}
    rows = {
        s: [*(cells.get((s, whole, name)) for name in named), cells.get((s, WITHIN, a.KAPPA.name))] for s in subjects
    }
    yield _title(f"Against {reference_name(question)}: all dimensions together")
    yield _grid("Rater", rows, [*named.values(), "kappa, chance within"])
    if spread := _spread(question, cells, whole):
        yield Text(spread)
    if len(dimensions) > 1:
        yield _title("Kappa against it, by dimension")
        yield _by_dimension(cells, subjects, [d for d in dimensions if d not in (POOLED, WITHIN)])


def _spread(question: Question, cells: Cells, whole: str) -> str:
    found = [cells[rater, whole, a.KAPPA.name].value for rater in question.voices]
    values = [value for value in found if not isinstance(value, Undefined)]
    if len(values) < 2:
        return ""
    return f"Kappa of the {len(values)} raters runs from {min(values):.3f} to {max(values):.3f}."


def _by_dimension(cells: Cells, subjects: Sequence[str], dimensions: Sequence[str]) -> Grid:
    found = {s: [cells.get((s, dimension, a.KAPPA.name)) for dimension in dimensions] for s in subjects}
    rows = [Row(s, ["" if f is None else _value(f.value) for f in its]) for s, its in found.items()]
    return Grid("Rater", dimensions, rows)


def _confusion(labels: Labels, question: Question, report: Report) -> Iterator[RenderableType]:
    words, last = labels.words.all, report.confused[-1].dimension if report.confused else ""
    shown = [c for c in report.confused if c.dimension == last][:CONFUSED]
    for c in shown:
        yield _title(f"{c.subject} (columns) and {reference_name(question)} (rows), {last}")
        yield _matrix(c, words)
    if len(question.judged) > len(shown):
        yield Text(f"The confusion of the other {len(question.judged) - len(shown)} raters is in --csv and --json.")


def _matrix(confused: Confused, words: Sequence[str]) -> Grid:
    rows = []
    for place, word in enumerate(words):
        rates = sorted((r for r in confused.rates if r.word == word), key=lambda rate: rate.name != SENSITIVITY)
        rows.append(Row(word, [*map(str, confused.counts[place]), *map(_rate, rates)]))
    return Grid("", [*words, "sensitivity", "specificity"], rows)


def _rate(rate: Rate) -> str:
    return f"{_two(rate)}\nof {counted(rate.n)}" if rate.n else UNDEFINED


def _unsettled(report: Report) -> list[str]:
    if not report.unsettled:
        return []
    whole = report.unsettled[-1]
    where = [f"{u.dimension} {u.split}" for u in report.unsettled[:-1] if u.split]
    told = f" ({', '.join(where)})" if where else ""
    return [
        f"Without a majority, and so without a reference: {whole.split} of {whole.units} ratings{told}; "
        f"rated by one alone: {whole.single}, by none: {whole.unrated}."
    ]


def _reasons(report: Report) -> list[str]:
    """Why numbers are undefined, each reason once with how many it concerns."""
    reasons = [f.value.reason for f in report.findings if isinstance(f.value, Undefined)]
    intervals = [
        f.interval.reason for f in report.findings if isinstance(f.interval, Undefined) and f.value != f.interval
    ]
    told = [f"Undefined: {reasons.count(reason)} numbers, because {reason}." for reason in dict.fromkeys(reasons)]
    count = len(intervals)
    return [*told, *([f"{count} numbers have no interval: --json tells why of each."] if count else [])]


def _cells(report: Report, section: Section) -> Cells:
    return {(f.subject, f.dimension, f.statistic): f for f in report.findings if f.section is section}


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _grid(first: str, rows: Mapping[str, Sequence[Finding | None]], columns: Sequence[str]) -> Grid:
    return Grid(first, ["n", *columns], [_row(name, findings) for name, findings in rows.items()], repeated=1)


def _row(name: str, findings: Sequence[Finding | None]) -> Row:
    """Behind a name the ratings of the first number; where others are behind one, these stand in its cell."""
    n = next((f.n for f in findings if f is not None), None)
    cells = [_cell(f, "" if f is None or f.n == n else f"\nn {counted(f.n)}") for f in findings]
    return Row(name, ["" if n is None else counted(n), *cells])


def _cell(finding: Finding | None, more: str) -> str:
    return "" if finding is None else f"{_two(finding)}{more}"


def _two(found: Finding | Rate) -> str:
    """The value, below it the interval."""
    if isinstance(found.interval, Undefined):
        return _value(found.value)
    return f"{_value(found.value)}\n{found.interval.low:.2f}..{found.interval.high:.2f}"


def _value(value: float | Undefined) -> str:
    return UNDEFINED if isinstance(value, Undefined) else f"{value:.3f}"
