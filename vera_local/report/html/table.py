"""The table of conversations: one line each. Knows no transcript."""

from __future__ import annotations

from dataclasses import dataclass

from vera_local.report.html.text import visible
from vera_local.report.html.tones import UNRATED, short_names, tones
from vera_local.report.reading import UNRATED as UNRATED_WORD
from vera_local.report.record import Held, Record
from vera_local.report.terminal import ENDINGS
from vera_local.score import Scale


@dataclass(frozen=True)
class Cell:
    """A rating: its word, a short one, its tone and its place among the ratings, the best first; -1: not rated."""

    word: str
    short: str
    tone: str
    place: int


NOT_YET = Cell("not rated", "-", "none", -1)


@dataclass(frozen=True)
class Line:
    """One conversation; `words` is what a search looks through, `uncertain` and `missing` count answers."""

    anchor: str
    id: str
    persona: str
    group: str
    group_place: int
    ending: str
    turns: int
    cells: tuple[Cell, ...]
    worst: int
    uncertain: int
    missing: int
    words: str


@dataclass(frozen=True)
class Table:
    """All of them, with what one can choose among; `judge` None: nothing has been rated."""

    judge: str | None
    dimensions: tuple[str, ...]
    groups: tuple[str, ...]
    endings: tuple[str, ...]
    ratings: tuple[str, ...]
    lines: tuple[Line, ...]


def table(record: Record) -> Table:
    """The conversations of a run with the ratings of its first judge, in the run's order."""
    rubric, judge = record.instrument.rubric, record.first
    groups = _groups(record)
    scale = Scale(rubric.ratings, rubric.not_relevant, rubric.dimensions, groups)
    lines = tuple(_line(held, judge, scale) for held in record.conversations)
    words = (*rubric.ratings, *([] if rubric.not_relevant is None else [rubric.not_relevant]), UNRATED_WORD)
    endings = tuple(dict.fromkeys(line.ending for line in lines))
    return Table(judge, rubric.dimensions, groups, endings, words, lines)


def cells(held: Held, judge: str | None, scale: Scale) -> tuple[Cell, ...]:
    """The rating of each dimension of the scale."""
    ratings = held.ratings(judge)
    return tuple(cell(ratings[d].rating, scale) if d in ratings else NOT_YET for d in scale.dimensions)


def _groups(record: Record) -> tuple[str, ...]:
    """Those that take part, in the order of the scores where there are any."""
    present = dict.fromkeys(held.group for held in record.conversations)
    known = record.scores[record.first].scale.groups if record.first else ()
    return (*(group for group in known if group in present), *(group for group in present if group not in known))


def _line(held: Held, judge: str | None, scale: Scale) -> Line:
    c = held.conversation
    rated = cells(held, judge, scale)
    rows = [row for opinion in held.opinions for row in opinion.rows]
    return Line(
        anchor=held.anchor,
        id=visible(c.id),
        persona=visible(c.persona),
        group=held.group,
        group_place=scale.groups.index(held.group),
        ending=ENDINGS[c.ending],
        turns=len(c.messages),
        cells=rated,
        worst=max((cell.place for cell in rated), default=-1),
        uncertain=sum(bool(row.doubt) for row in rows),
        missing=sum(row.answer is None for row in rows),
        words=visible(f"{c.id} {c.persona}").casefold(),
    )


def cell(rating: str | None, scale: Scale) -> Cell:
    """How a rating is shown; None: Unrated."""
    if rating is None:
        return Cell(UNRATED_WORD, UNRATED_WORD, UNRATED, -1)
    tone, short = tones(scale.ratings, scale.not_relevant), short_names(scale.ratings, scale.not_relevant)
    place = scale.ratings.index(rating) if rating in scale.ratings else -1
    return Cell(rating, short[rating], tone[rating], place)
