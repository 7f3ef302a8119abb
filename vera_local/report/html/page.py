"""A run's report as one page: what each section shows. Knows no template, and no number but by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vera_local.report.html.bars import Bar, Block, blocks, legend, whole, worst_bars
from vera_local.report.html.doubts import Doubts, doubts
from vera_local.report.html.modes import Mode, modes
from vera_local.report.html.provenance import Provenance, provenance
from vera_local.report.html.table import Table, table
from vera_local.report.html.text import script_json
from vera_local.report.html.transcripts import conversation_data, rubric_data
from vera_local.report.record import Record
from vera_local.report.terminal import ENDINGS

EXCERPTS = 3
"""For each failure mode, unless told otherwise."""

_WORST_SHOWN = 3

SIMULATION = {
    "conversations": "Conversations",
    "messages": "Messages of the persona",
    "messages_asked_again": "of these asked for again",
    "rejected_tries": "Rejected tries",
    "failed_conversations": "Conversations given up for want of a usable message",
    "early_ends": "End signals that came too early",
    "conversations_beyond_simulators_context": "Conversations longer than the simulator's context",
    "conversations_beyond_chatbots_context": "Conversations longer than the chatbot's context",
}


@dataclass(frozen=True)
class Choice:
    """What a page may hold. `redact`: nothing that was said in a conversation or by a judge, but answers."""

    redact: bool = False
    excerpts: int = EXCERPTS

    @property
    def excerpts_shown(self) -> int:
        """None where redacted."""
        return 0 if self.redact else self.excerpts


@dataclass(frozen=True)
class Ratings:
    """What one judge, or several joined, said of all conversations. `columns`: persona column -> its blocks."""

    judge: str
    whole: Block
    columns: dict[str, tuple[Block, ...]]
    legend: Mapping[str, str]
    not_relevant: str | None
    has_score: bool
    worst: tuple[Bar, ...]
    modes: tuple[Mode, ...]


@dataclass(frozen=True)
class Transcript:
    """A conversation's data for a script element, and what the page calls it."""

    anchor: str
    data: str


@dataclass(frozen=True)
class Page:
    """A report. `ratings` in the judges' order; `transcripts` and `rubric` are empty where redacted.

    `unjudged`: judge -> conversations that are fit to judge and that it has not rated; without those that rated all.
    """

    record: Record
    choice: Choice
    ratings: tuple[Ratings, ...]
    table: Table
    doubts: Doubts
    endings: dict[str, int]
    judgeable: int
    unfinished: int
    unjudged: dict[str, int]
    transcripts: tuple[Transcript, ...]
    rubric: str
    provenance: Provenance

    @property
    def first(self) -> Ratings | None:
        """The ratings that stand first."""
        return self.ratings[0] if self.ratings else None

    @property
    def mode_ratings(self) -> tuple[Ratings, ...]:
        """Those with a path of questions of their own; who only joins others' ratings has none."""
        members = {judge.name for judge in self.record.judges if judge.members}
        return tuple(r for r in self.ratings if r.judge not in members)

    @property
    def opens(self) -> bool:
        """Whether the page has the transcripts, and opens them itself."""
        return not self.choice.redact

    def href(self, anchor: str) -> str:
        """The address of a conversation's line."""
        return f"#{anchor}"

    @property
    def checkers(self) -> tuple[str, ...]:
        """The judges that gave marks for personas."""
        return tuple(dict.fromkeys(judge for its in self.record.simulators.values() for judge in its["checks"]))

    @property
    def simulation_rows(self) -> dict[str, str]:
        """Figure of a simulator -> what it is in words."""
        return SIMULATION


def page(record: Record, choice: Choice) -> Page:
    """The report of a run, as far as `choice` lets it."""
    conversations = [held.conversation for held in record.conversations]
    return Page(
        record=record,
        choice=choice,
        ratings=tuple(_ratings(record, choice)),
        table=table(record),
        doubts=doubts(record, reasons=not choice.redact),
        endings=dict(Counter(ENDINGS[c.ending] for c in conversations)),
        judgeable=sum(c.judgeable for c in conversations),
        unfinished=sum(c.ending is None for c in conversations),
        unjudged=_unjudged(record),
        transcripts=() if choice.redact else tuple(_transcripts(record)),
        rubric="" if choice.redact else script_json(rubric_data(record.instrument)),
        provenance=provenance(record, redact=choice.redact),
    )


def _ratings(record: Record, choice: Choice) -> Iterator[Ratings]:
    """What each judge that has scores said, in the judges' order."""
    return (ratings_by(record, judge.name, choice) for judge in record.judges if judge.name in record.scores)


def ratings_by(record: Record, judge: str, choice: Choice) -> Ratings:
    """What a judge that has scores said."""
    scores = record.scores[judge]
    block = whole(scores, judge)
    return Ratings(
        judge=judge,
        whole=block,
        columns=blocks(scores, judge, record.instrument.group_column),
        legend=legend(scores.scale),
        not_relevant=scores.scale.not_relevant,
        has_score=scores.scale.has_vera_score,
        worst=tuple(worst_bars(block, _WORST_SHOWN)),
        modes=modes(record, judge, choice.excerpts_shown),
    )


def _unjudged(record: Record) -> dict[str, int]:
    fit = [held for held in record.conversations if held.conversation.judgeable]
    left = {judge: sum(not held.ratings(judge) for held in fit) for judge in record.judges_behind}
    return {judge: n for judge, n in left.items() if n}


def _transcripts(record: Record) -> Iterator[Transcript]:
    for held in record.conversations:
        yield Transcript(held.anchor, script_json(conversation_data(held)))
