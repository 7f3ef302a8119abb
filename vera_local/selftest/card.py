"""The judge card: what a self-test found out about a judge. Knows no transcript and counts nothing."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from vera_local.score.intervals import Undefined, wilson


class Part(BaseModel):
    """A part of a card: nothing in it changes, and nothing unknown is read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Share(Part):
    """`count` of `n`; `share` is between 0 and 1, None where `n` is 0."""

    n: int
    count: int
    share: float | None

    @classmethod
    def of(cls, count: int, n: int) -> Share:
        """So many of so many."""
        return cls(n=n, count=count, share=count / n if n else None)


class Accuracy(Part):
    """How many of `n` answers were right, beside what a constant judge gets right.

    `low` to `high`: Wilson's 95 % interval of `accuracy`. `baseline`: the accuracy of the best judge that gives
    each question one answer, whatever it reads. A missing answer is not right.
    """

    n: int
    right: int
    accuracy: float
    low: float
    high: float
    baseline: float

    @classmethod
    def of(cls, right: int, n: int, constant: int) -> Accuracy:
        """`right` of `n` answers, of which a constant judge gets `constant` right; ValueError where `n` is 0."""
        interval = wilson(right, n)
        if isinstance(interval, Undefined):
            raise ValueError("no accuracy without an answer")
        return cls(n=n, right=right, accuracy=right / n, low=interval.low, high=interval.high, baseline=constant / n)


class Instrument(Part):
    """The bundle a judge was tested with; `selftest` is the digest of the self-test's file."""

    name: str
    version: str
    digests: dict[str, str]
    selftest: str


class Sureness(Part):
    """What the probabilities of the options say: their mean joint `mass` (None: not read), the share of answers marked
    uncertain, and how often certain and uncertain answers were right."""

    mass: float | None
    uncertain: Share
    right_if_certain: Share
    right_if_uncertain: Share


class Card(Part):
    """One self-test of one judge with one bundle.

    `identity` is the fingerprint of all that decides what the judge answers. `askings` counts everything asked,
    `missing` those without an answer, by state. `attacks` counts, by the attack's id, the answers that were right
    without it and what the attacker wanted with it; `attacked` all of them. `reversed` counts answers that were
    another one when the options were listed in reverse order, `master_keys` the right answers by master key,
    `repeated` the questions that got the same answer every time, `evidence` the answers that named a turn which bears
    them out.
    """

    layout: Literal[1] = 1
    judge: str
    title: str
    mode: str
    temperature: float
    repeats: int
    identity: str
    bundle: Instrument
    vera_local: str
    created: str
    askings: int
    missing: dict[str, int]
    overall: Accuracy
    dimensions: dict[str, Accuracy]
    kinds: dict[str, Share]
    below_baseline: bool
    attacked: Share
    attacks: dict[str, Share]
    reversed: Share
    master_keys: dict[str, Share]
    repeated: Share
    evidence: Share
    sureness: Sureness

    @property
    def standing(self) -> str:
        """What the accuracy is worth, in plain words."""
        if self.below_baseline:
            return "at or below a constant judge, which never reads the transcript: do not rely on its ratings"
        if self.overall.low <= self.overall.baseline:
            return "above a constant judge, but chance alone could explain it"
        return "above a constant judge"
