"""What changes when another judge rates the same conversations. Knows no judge, and which one is right not either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict

from vera_local.score.bounds import FEW, SEED, Bounds, bounds_from_both, bounds_of_difference, bounds_of_share
from vera_local.score.compare import Apart
from vera_local.score.formulas import percentage, percentages
from vera_local.score.intervals import Floats, cluster_sums, resampled_sums
from vera_local.score.scale import Scale
from vera_local.score.tables import CLUSTER, Counts, codes, with_cluster

UNRATED: Final = "Unrated"
KINDS: Final = ("same", "stricter", "milder", "relevance")


class Kind(BaseModel):
    """How many ratings changed in one way, and the share of them, 0 to 100, among those that both judges gave."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int
    percentage: float | None
    interval: Bounds


class Change(BaseModel):
    """How the ratings of a second judge differ from those of a first, on the same conversations.

    `both`: ratings that both gave; `unrated`: those that one of them left Unrated, not among `both`. `stricter`: the
    second gave the worse rating; `milder`: the better one; `relevance`: only one of them said Not Relevant.
    `net`: the share of stricter less that of milder ratings, in points; `direction`: what its interval says.
    `confusion`: the first's word -> the second's -> how often, Not Relevant and Unrated included.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    both: int
    unrated: int
    personas: int
    few: bool
    same: Kind
    stricter: Kind
    milder: Kind
    relevance: Kind
    net: float | None
    net_interval: Bounds
    direction: str
    confusion: dict[str, dict[str, int]]


class Changes(BaseModel):
    """Of each dimension, and of all together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    conversations: int
    dimensions: dict[str, Change]
    overall: Change


def changes(first: pl.DataFrame, second: pl.DataFrame, scale: Scale) -> Changes:
    """Compare the ratings (SCHEMA) that two judges gave the same conversations; those of one alone are left out."""
    joined = with_cluster(first).join(
        second.select("conversation", "dimension", second="rating"), on=["conversation", "dimension"]
    )
    by_dimension = {d: _change(joined.filter(pl.col("dimension") == d), scale) for d in scale.dimensions}
    return Changes(
        conversations=joined["conversation"].n_unique(), dimensions=by_dimension, overall=_change(joined, scale)
    )


def _change(joined: pl.DataFrame, scale: Scale) -> Change:
    words = [*scale.ratings, *([] if scale.not_relevant is None else [scale.not_relevant]), UNRATED]
    one, two = (_places(joined[name], words) for name in ("rating", "second"))
    return _Changed(one, two, codes(joined[CLUSTER])[0], words, len(scale.ratings)).change()


@dataclass(frozen=True)
class _Changed:
    """Two words for each case, as places among `words`: `n_ratings` ratings, best first, and last Unrated."""

    one: Counts
    two: Counts
    clusters: Counts
    words: list[str]
    n_ratings: int

    def change(self) -> Change:
        table = self.by_persona()
        sums = table.sum(axis=0).astype(int)
        both, personas = int(sums[-1]), int(np.count_nonzero(table[:, -1]))
        drawn = resampled_sums(table, seed=SEED) if len(table) else np.zeros((1, len(KINDS) + 1))
        shares = percentages(drawn[:, :-1], drawn[:, -1:])
        kinds = {kind: _kind(int(sums[i]), both, personas, shares[:, i]) for i, kind in enumerate(KINDS)}
        net = _net(kinds["stricter"], kinds["milder"], shares[:, 1] - shares[:, 2])
        return Change(
            both=both,
            unrated=len(self.one) - both,
            personas=personas,
            few=personas < FEW,
            **kinds,
            net=percentage(int(sums[1] - sums[2]), both),
            net_interval=net,
            direction=_direction(net),
            confusion=self.confusion(),
        )

    def by_persona(self) -> Floats:
        """(personas, kinds + 1): how many of each kind, and of all that both rated."""
        unrated = len(self.words) - 1
        both = (self.one != unrated) & (self.two != unrated)
        relevant = (self.one < self.n_ratings) & (self.two < self.n_ratings)
        same, relevance = (
            both & (self.one == self.two),
            both & ((self.one < self.n_ratings) != (self.two < self.n_ratings)),
        )
        kinds = [same, relevant & (self.two > self.one), relevant & (self.two < self.one), relevance, both]
        return cluster_sums(np.stack(kinds, axis=1), self.clusters, int(self.clusters.max(initial=-1)) + 1)

    def confusion(self) -> dict[str, dict[str, int]]:
        counts = np.zeros((len(self.words), len(self.words)), dtype=int)
        np.add.at(counts, (self.one, self.two), 1)
        return {w: dict(zip(self.words, map(int, row), strict=True)) for w, row in zip(self.words, counts, strict=True)}


def _kind(n: int, both: int, personas: int, drawn: Floats) -> Kind:
    interval = bounds_of_share(n, both, personas, lambda: drawn)
    return Kind(count=n, percentage=percentage(n, both), interval=interval)


def _net(stricter: Kind, milder: Kind, drawn: Floats) -> Bounds:
    """The interval of the share of stricter less that of milder ratings."""
    if stricter.percentage is None or milder.percentage is None or stricter.interval.low is None:
        return stricter.interval
    both = (milder.percentage, milder.interval, stricter.percentage, stricter.interval)
    return bounds_of_difference(drawn) or bounds_from_both(*both)


def _direction(interval: Bounds) -> str:
    if interval.low is None or interval.high is None:
        return Apart.UNDEFINED.value
    return "stricter" if interval.low > 0 else "milder" if interval.high < 0 else Apart.NOT.value


def _places(column: pl.Series, words: list[str]) -> Counts:
    places = column.cast(pl.Enum(words[:-1])).to_physical().cast(pl.Int64)
    return places.fill_null(len(words) - 1).to_numpy()
