"""All that a report is made of, as plain data. Knows no file, no model and no way to show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vera_local.bundle import DimensionRating, Rubric
from vera_local.conversation import Conversation
from vera_local.report.reading import Opinion
from vera_local.report.usage import Work
from vera_local.score import Scores
from vera_local.score.alike import Share

LIMITS = (
    "This is a research tool, not a certificate and not a medical device. "
    "Its own rubric and personas are not clinically validated."
)

DEMONSTRATION = (
    "A role was played by the embedded 135M-parameter model. It shows the machinery at work; "
    "its ratings say nothing clinical about any chatbot."
)


@dataclass(frozen=True)
class Instrument:
    """The bundle that a run was made with; `group_column`: what the groups of its personas are values of."""

    name: str
    title: str
    version: str
    notice: str
    group_column: str
    rubric: Rubric


class Tested(NamedTuple):
    """One line of a judge's self-test: so many right or so affected, with an interval and a constant judge's share.

    Shares run from 0 to 1; None: no data, or not a thing that has one.
    """

    what: str
    found: int
    n: int
    share: float | None
    low: float | None = None
    high: float | None = None
    constant: float | None = None


@dataclass(frozen=True)
class SelfTest:
    """What a self-test found of a judge: in one sentence, and line by line."""

    headline: str
    below_baseline: bool
    created: str
    lines: tuple[Tested, ...]


@dataclass(frozen=True)
class JudgeRecord:
    """A judge, or (with `members`) several joined to one by `rule`; `selftest` None: there is none on record."""

    name: str
    model: str
    mode: str
    members: tuple[str, ...] = ()
    rule: str = ""
    selftest: SelfTest | None = None


class Coefficient(NamedTuple):
    """An agreement among judges: `value` None: undefined, for the reason in `note`."""

    subject: str
    statistic: str
    n: int
    value: float | None
    low: float | None
    high: float | None
    note: str


@dataclass(frozen=True)
class Held:
    """The conversation at `place` (from 1), whose persona is of `group`, and what every judge says of it."""

    place: int
    conversation: Conversation
    group: str
    opinions: tuple[Opinion, ...] = ()

    @property
    def anchor(self) -> str:
        """What a page calls it; its id may hold any character."""
        return f"c{self.place}"

    def ratings(self, judge: str | None) -> dict[str, DimensionRating]:
        """Dimension -> what that judge says of it; empty where it has not rated the conversation."""
        return {r.dimension: r for o in self.opinions if o.judge == judge for r in o.ratings}


@dataclass(frozen=True)
class Record:
    """A run for a report.

    `judges` in the order to show them, the first one's ratings before all; `scores`: judge -> scores, as scores.json
    has them. `alike`: pair of judges -> ratings that are equal; `repeats`: joined judge -> answers that are.
    `simulators`: as simulation.json has them. `replies`: chatbot messages: all, cut at their limit, empty. `reasons`:
    unplanned ending or verdict state -> the first reason given. `commands` make the run again, with the file `config`
    where that is not empty. `warnings`: what must be said wherever ratings are shown.
    """

    name: str
    created: str
    instrument: Instrument
    chatbot: str
    players: tuple[str, ...]
    judges: tuple[JudgeRecord, ...]
    conversations: tuple[Held, ...]
    scores: Mapping[str, Scores]
    manifest: Mapping[str, Any]
    commands: tuple[str, ...]
    work: Work
    config: str = ""
    alike: Mapping[tuple[str, str], Share] = field(default_factory=dict)
    repeats: Mapping[str, Share] = field(default_factory=dict)
    agreement: tuple[Coefficient, ...] = ()
    simulators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    replies: tuple[int, int, int] = (0, 0, 0)
    reasons: Mapping[str, str] = field(default_factory=dict)
    cost: tuple[str, ...] = ()
    warnings: Sequence[str] = ()
    demonstration: bool = False

    @property
    def first(self) -> str | None:
        """The judge whose ratings stand first; None where nothing has been rated."""
        return next((judge.name for judge in self.judges if judge.name in self.scores), None)

    @property
    def judges_behind(self) -> tuple[str, ...]:
        """Those that were asked; not those that join others."""
        return tuple(judge.name for judge in self.judges if not judge.members)

    @property
    def day(self) -> str:
        """The date on which the run was begun."""
        return self.created.partition("T")[0]

    @property
    def personas(self) -> int:
        """How many personas took part; conversations without a named one count as one each."""
        return len({h.conversation.persona or h.conversation.id for h in self.conversations})
