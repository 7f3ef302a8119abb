"""Who agrees with whom: raters among themselves, in pairs, and with a reference. Knows no file and prints nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vera_local.score import agreement as a
from vera_local.score.agreement import MISSING, Codes, Statistic, confusion
from vera_local.score.consensus import constant, leave_one_out_mode, majority, majority_of_others
from vera_local.score.estimate import Estimate, Sampling, Units, estimate, estimate_mean
from vera_local.score.intervals import Interval, Undefined
from vera_local.score.labels import Labels
from vera_local.score.rates import Rate, rates

POOLED: Final = "all"
WITHIN: Final = "all, chance within dimensions"
CONSTANT: Final = "baseline: constant per dimension"
MODE: Final = "baseline: mode per dimension and chatbot"
ONE_OF_THEM: Final = "one of them against the others"

_TWO = (a.KAPPA, a.KAPPA_LINEAR, a.KAPPA_QUADRATIC)
_REST = (a.ALPHA, a.ALPHA_ORDINAL, a.AC1, a.AC2_LINEAR, a.AC2_QUADRATIC)
OF_TWO: Final = (a.PERCENT, *_TWO, *_REST)
OF_MANY: Final = (a.PERCENT, a.FLEISS, *_REST)
OF_A_PAIR: Final = (a.PERCENT, a.KAPPA)


class Section(StrEnum):
    """What a finding is about."""

    AMONG = "among raters"
    PAIR = "pair of raters"
    REFERENCE = "against the reference"


class Finding(NamedTuple):
    """One coefficient. `subject`: the panel, pair or rater it is of; `n`: the units behind it."""

    section: Section
    subject: str
    dimension: str
    statistic: str
    n: int
    value: float | Undefined
    interval: Interval | Undefined


class Confused(NamedTuple):
    """How often the reference (rows) and a rater (columns) chose each pair of words, and what follows for each word."""

    subject: str
    dimension: str
    counts: NDArray[np.int_]
    rates: tuple[Rate, ...]


class Unsettled(NamedTuple):
    """Units of a dimension for which the majority is no reference.

    `split`: two or more raters, and no majority. `single`: one rating. `unrated`: none.
    """

    dimension: str
    units: int
    split: int
    single: int
    unrated: int


@dataclass(frozen=True)
class Question:
    """What to find out. `panels`: name -> the raters that are compared among themselves.

    `reference`: one rater's name, or several, whose majority it is; empty: no reference. `judged`: the raters that
    are held against it. `joined`: raters that are the majority of others, and so have no voice of their own in a mean.
    """

    panels: dict[str, tuple[str, ...]]
    reference: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()
    joined: frozenset[str] = frozenset()

    @property
    def voices(self) -> tuple[str, ...]:
        """The judged raters that are no majority of others."""
        return tuple(rater for rater in self.judged if rater not in self.joined)


@dataclass(frozen=True)
class Report:
    """All that was found."""

    findings: tuple[Finding, ...]
    confused: tuple[Confused, ...]
    unsettled: tuple[Unsettled, ...]


def examine(labels: Labels, question: Question, sampling: Sampling | None = None) -> Report:
    """Answer the question for every dimension, for all together, and with chance taken within dimensions."""
    view = _View(labels, sampling or Sampling())
    findings = (*_among(view, question), *_pairs(view, question))
    if not question.reference:
        return Report(findings, (), ())
    reference = _reference(view, question.reference)
    subjects = {rater: view.of(rater)[:, 0] for rater in question.judged}
    baselines = _baselines(view, reference)
    findings = (
        *findings,
        *_against(view, reference, subjects | baselines),
        *_mean(view, reference, [subjects[rater] for rater in question.voices]),
        *_members(view, question.reference),
    )
    unsettled = _unsettled(view, question.reference) if len(question.reference) > 1 else ()
    return Report(findings, tuple(_confused(view, reference, subjects)), unsettled)


class _Look(NamedTuple):
    dimension: str
    units: Units
    within: bool


class _View:
    """The labels by unit, and the ways to look at them."""

    def __init__(self, labels: Labels, sampling: Sampling) -> None:
        self.labels, self.sampling = labels, sampling
        self.categories, self.ordered = len(labels.words.all), len(labels.words.ordered)
        dimensions, cluster = len(labels.dimensions), np.unique(labels.clusters, return_inverse=True)[1]
        stratum = np.tile(np.arange(dimensions), len(labels.items))
        self.units = Units(labels.codes.reshape(-1, len(labels.raters)), stratum, np.repeat(cluster, dimensions))

    def of(self, *raters: str) -> Codes:
        """Their ratings: (units, raters)."""
        return self.units.codes[:, [self.labels.raters.index(rater) for rater in raters]]

    def beside(self, reference: Codes, codes: Codes) -> Units:
        """Two raters: the reference and another one, (units,) each."""
        return self.units.rated(np.column_stack([reference, codes]))

    def looks(self, units: Units) -> list[_Look]:
        """Each dimension's units, and where there are several all of them, with chance as a whole and within."""
        names = self.labels.dimensions
        parts = [_Look(name, units.where(units.stratum == place), False) for place, name in enumerate(names)]
        return [*parts, _Look(POOLED, units, False), _Look(WITHIN, units, True)] if len(names) > 1 else parts

    def findings(
        self, section: Section, subject: str, units: Units, statistics: Sequence[Statistic], *, parts: bool = True
    ) -> Iterator[Finding]:
        """Every statistic in every look; without `parts`, of all dimensions together only."""
        for look in self.looks(units) if parts else self.looks(units)[-2:]:
            for statistic in statistics:
                if found := self._estimate(statistic, look):
                    yield Finding(
                        section, subject, look.dimension, statistic.name, found.n, found.value, found.interval
                    )

    def _estimate(self, statistic: Statistic, look: _Look) -> Estimate | None:
        """None for what a scale is needed for where there is none; ratings apart from the scale are missing to it.

        None, too, for percent agreement within dimensions: without chance that is the pooled one again.
        """
        _, units, within = look
        if within and statistic is a.PERCENT:
            return None
        if not statistic.ordered:
            return estimate(statistic, units, self.categories, within=within, sampling=self.sampling)
        if not self.ordered:
            return None
        on_scale = units.rated(np.where(units.codes < self.ordered, units.codes, MISSING))
        return estimate(statistic, on_scale, self.ordered, within=within, sampling=self.sampling)


def _among(view: _View, question: Question) -> Iterator[Finding]:
    for panel, raters in question.panels.items():
        if len(raters) > 1:
            statistics = OF_TWO if len(raters) == 2 else OF_MANY
            yield from view.findings(Section.AMONG, panel, view.units.rated(view.of(*raters)), statistics)


def _pairs(view: _View, question: Question) -> Iterator[Finding]:
    everyone = dict.fromkeys(rater for panel in question.panels.values() for rater in panel)
    for pair in combinations(everyone, 2):
        units = view.units.rated(view.of(*pair))
        yield from view.findings(Section.PAIR, pair_name(*pair), units, OF_A_PAIR, parts=False)


def pair_name(first: str, second: str) -> str:
    """What a pair of raters is called in findings."""
    return f"{first} x {second}"


def _reference(view: _View, raters: Sequence[str]) -> Codes:
    return view.of(*raters)[:, 0] if len(raters) == 1 else majority(view.of(*raters), view.categories)


def _baselines(view: _View, reference: Codes) -> dict[str, Codes]:
    stratum, chatbots = view.units.stratum, view.labels.chatbots
    found = {CONSTANT: constant(reference, stratum, view.categories)}
    if chatbots is None:
        return found
    dimensions = len(view.labels.dimensions)
    chatbot = np.repeat(np.unique(chatbots, return_inverse=True)[1], dimensions)
    return found | {MODE: leave_one_out_mode(reference, chatbot * dimensions + stratum, view.categories)}


def _against(view: _View, reference: Codes, subjects: dict[str, Codes]) -> Iterator[Finding]:
    for subject, codes in subjects.items():
        yield from view.findings(Section.REFERENCE, subject, view.beside(reference, codes), OF_TWO)


def _mean(view: _View, reference: Codes, judged: Sequence[Codes]) -> Iterator[Finding]:
    """The judged raters' mean kappa, where there are several."""
    if len(judged) < 2:
        return
    subject, name = f"mean of {len(judged)} raters", a.KAPPA.name
    compared = [view.looks(view.beside(reference, codes)) for codes in judged]
    for looks in zip(*compared, strict=True):
        dimension, _, within = looks[0]
        units = [look.units for look in looks]
        found = estimate_mean(a.KAPPA, units, view.categories, within=within, sampling=view.sampling)
        yield Finding(Section.REFERENCE, subject, dimension, name, found.n, found.value, found.interval)


def _members(view: _View, members: Sequence[str]) -> Iterator[Finding]:
    """All raters of the majority, each against the majority of its others, as one comparison."""
    if len(members) < 3:
        return
    own = view.of(*members)
    both = np.stack([majority_of_others(own, view.categories), own], axis=2).reshape(-1, 2)
    stratum, cluster = (np.repeat(part, len(members)) for part in (view.units.stratum, view.units.cluster))
    yield from view.findings(Section.REFERENCE, ONE_OF_THEM, Units(both, stratum, cluster), OF_TWO)


def _confused(view: _View, reference: Codes, judged: dict[str, Codes]) -> Iterator[Confused]:
    for subject, codes in judged.items():
        for dimension, units, within in view.looks(view.beside(reference, codes)):
            if not within:
                added = confusion(units.codes, view.categories)
                found = tuple(rates(added, units.cluster, view.labels.words.all, view.sampling))
                yield Confused(subject, dimension, added.sum(axis=0).astype(np.int_), found)


def _unsettled(view: _View, members: Sequence[str]) -> tuple[Unsettled, ...]:
    looks = view.looks(view.units.rated(view.of(*members)))
    return tuple(_left_open(name, units.codes, view.categories) for name, units, within in looks if not within)


def _left_open(dimension: str, codes: Codes, categories: int) -> Unsettled:
    raters, none = (codes != MISSING).sum(axis=1), majority(codes, categories) == MISSING
    split, single, unrated = (int(part.sum()) for part in (none & (raters > 1), raters == 1, raters == 0))
    return Unsettled(dimension, len(codes), split, single, unrated)
