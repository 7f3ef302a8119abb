"""The list of runs, and a run's first page: what they show. Knows no template and no server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from vera_local.errors import UserError
from vera_local.report.html.page import EXCERPTS, Choice, Ratings, ratings_by
from vera_local.report.html.provenance import Provenance, provenance
from vera_local.report.record import Record
from vera_local.run.viewed import Advance, Stage, Title, Viewed, advance_of, title_of


@dataclass(frozen=True)
class RunLine:
    """A run in a list; `problem`: why it cannot be shown, empty where it can."""

    name: str
    href: str
    title: Title | None
    advance: Advance | None
    problem: str


def run_lines(runs: Mapping[str, Path]) -> Iterator[RunLine]:
    """All runs, the one that was begun last on top; what cannot be read says why."""
    lines = [_run_line(name, folder) for name, folder in runs.items()]
    return iter(sorted(lines, key=lambda line: line.title.created if line.title else "", reverse=True))


def _run_line(name: str, folder: Path) -> RunLine:
    href = f"runs/{quote(name, safe='')}/"
    try:
        return RunLine(name, href, title_of(folder), advance_of(folder), "")
    except UserError as error:
        return RunLine(name, href, None, None, str(error))


@dataclass(frozen=True)
class Bar:
    """How far one thing is: `done` of `of`."""

    name: str
    done: int
    of: int
    text: str


@dataclass(frozen=True)
class Progress:
    """How far a run is; `live`: it goes on by itself."""

    live: bool
    stage: str
    bars: tuple[Bar, ...]


def progress_of(advance: Advance) -> Progress:
    """In bars: conversations, then judge by judge."""
    counts = advance.counts
    said = f"{counts.ended} of {counts.conversations} conversations ended, {counts.messages} messages"
    bars = [Bar("Conversations", counts.ended, counts.conversations, said)]
    for judge in advance.judges:
        told = f"{judge.rated} of {counts.judgeable} conversations rated, {judge.verdicts} answers"
        bars.append(Bar(judge.judge, judge.rated, counts.judgeable, told))
    return Progress(advance.stage is Stage.AT_WORK, advance.stage.value, tuple(bars))


@dataclass(frozen=True)
class RunPage:
    """A run as it was scored last. `judges` have scores; `first` are the ratings of the one that was asked for, and
    `mode_ratings` those of who put the questions behind them. `behind`: so many conversations have been rated since."""

    record: Record
    choice: Choice
    judges: tuple[str, ...]
    first: Ratings | None
    mode_ratings: tuple[Ratings, ...]
    provenance: Provenance
    advance: Advance
    progress: Progress
    behind: int

    @property
    def ratings(self) -> tuple[Ratings, ...]:
        """Those that are shown."""
        return () if self.first is None else (self.first,)

    @property
    def done(self) -> bool:
        """Whether nothing of the run is missing."""
        return self.advance.stage is Stage.DONE

    @property
    def opens(self) -> bool:
        """Conversations have pages of their own."""
        return False

    def href(self, anchor: str) -> str:
        """The address of a conversation, from this page."""
        return f"conversations/{anchor.removeprefix('c')}"

    def by(self, judge: str) -> str:
        """The address of this page with the ratings of another judge."""
        return f"?judge={quote(judge, safe='')}"


def run_page(run: Viewed, judge: str | None) -> RunPage:
    """The first page of a run, with the ratings of one judge (None: of the first); UserError for an unknown one."""
    seen, advance, choice = run.overview(judge), advance_of(run.folder), Choice(excerpts=EXCERPTS)
    record = seen.record
    first, asker = (None if name is None else ratings_by(record, name, choice) for name in (seen.judge, seen.asker))
    return RunPage(
        record=record,
        choice=choice,
        judges=seen.judges,
        first=first,
        mode_ratings=() if asker is None else (asker,),
        provenance=provenance(record, redact=False),
        advance=advance,
        progress=progress_of(advance),
        behind=_behind(record, advance),
    )


def _behind(record: Record, advance: Advance) -> int:
    scored = {judge: scores.conversations for judge, scores in record.scores.items()}
    return max((j.rated - scored.get(j.judge, 0) for j in advance.judges), default=0)
