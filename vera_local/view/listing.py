"""The list of a run's conversations, as far as it was asked for: what it shows. Knows no template and no server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vera_local.report.html.table import NOT_YET, Line, cell
from vera_local.report.html.text import visible
from vera_local.report.reading import UNRATED
from vera_local.report.terminal import ENDINGS
from vera_local.run.glances import Doubts
from vera_local.run.viewed import Row, Viewed
from vera_local.score import Scale
from vera_local.view.asked import Asked
from vera_local.view.choosing import choose
from vera_local.view.conversation import Part, marked

PER_PAGE = 50
"""Conversations on one page."""

AROUND = 60
"""Characters shown on each side of what was found."""


@dataclass(frozen=True)
class Column:
    """A heading; `sorted`: ascending, descending or nothing; `href` sorts by it, the other way where it is sorted."""

    title: str
    href: str
    sorted: str
    right: bool = False
    dimension: bool = False


@dataclass(frozen=True)
class Found:
    """Where the words are: the first turn, its text around them, and how many other turns hold them."""

    turn: int
    parts: tuple[Part, ...]
    others: int


@dataclass(frozen=True)
class ListLine:
    """A conversation in the list and its address."""

    line: Line
    href: str
    found: Found | None


@dataclass(frozen=True)
class Options:
    """What one can choose among."""

    judges: tuple[str, ...]
    groups: tuple[str, ...]
    endings: tuple[str, ...]
    dimensions: tuple[str, ...]
    ratings: tuple[str, ...]


@dataclass(frozen=True)
class ListPage:
    """A page of the list: `first` to `last` of `chosen`, of `total` conversations."""

    asked: Asked
    judge: str | None
    group_column: str
    options: Options
    columns: tuple[Column, ...]
    lines: tuple[ListLine, ...]
    first: int
    last: int
    chosen: int
    total: int
    page: int
    pages: int

    def turn_to(self, page: int) -> str:
        """The address of another page of the list."""
        return self.asked.query(page=str(page)) or "?"


def list_page(run: Viewed, asked: Asked) -> ListPage:
    """The conversations that were asked for; UserError where that cannot be."""
    judges, rows, scale = rows_of(run, asked)
    judge = asked.judge or next(iter(judges), None)
    holding = run.holding(asked.words) if asked.words else None
    chosen = choose(rows, asked, scale, holding, run.doubts)
    pages = max(1, -(-len(chosen) // PER_PAGE))
    page = min(max(1, int(asked.page)), pages)
    shown = chosen[(page - 1) * PER_PAGE : page * PER_PAGE]
    return ListPage(
        asked=asked,
        judge=judge,
        group_column=run.bundle.group_column,
        options=_options(judges, rows, scale),
        columns=tuple(_columns(asked, run, scale)) if judge else tuple(_columns(asked, run, None)),
        lines=tuple(_lines(run, asked, shown, scale, holding)),
        first=(page - 1) * PER_PAGE + bool(shown),
        last=(page - 1) * PER_PAGE + len(shown),
        chosen=len(chosen),
        total=len(rows),
        page=page,
        pages=pages,
    )


def rows_of(run: Viewed, asked: Asked) -> tuple[tuple[str, ...], tuple[Row, ...], Scale]:
    """The judges, all conversations, and the scale that they are rated on; UserError for an unknown judge."""
    judges, rows = run.rows(asked.judge or None)
    return judges, rows, scale_of(run, [row.group for row in rows])


def scale_of(run: Viewed, groups: Sequence[str]) -> Scale:
    """The bundle's ratings and dimensions, with the groups that take part in its order."""
    rubric = run.bundle.rubric
    known = dict.fromkeys((*run.bundle.groups, *groups))
    return Scale(rubric.ratings, rubric.not_relevant, rubric.dimensions, tuple(g for g in known if g in set(groups)))


def _options(judges: tuple[str, ...], rows: Sequence[Row], scale: Scale) -> Options:
    not_relevant = () if scale.not_relevant is None else (scale.not_relevant,)
    return Options(
        judges=judges,
        groups=scale.groups,
        endings=tuple(dict.fromkeys(ENDINGS[row.sight.ending] for row in rows)),
        dimensions=scale.dimensions,
        ratings=(*scale.ratings, *not_relevant, UNRATED),
    )


def _columns(asked: Asked, run: Viewed, scale: Scale | None) -> Iterator[Column]:
    """Numbers and ratings are first sorted with the largest and the worst on top."""
    yield _column(asked, "place", "Conversation")
    yield _column(asked, "persona", "Persona")
    yield _column(asked, "group", run.bundle.group_column)
    for place, dimension in enumerate(scale.dimensions if scale else ()):
        yield _column(asked, f"d{place}", dimension, down=True, dimension=True)
    yield _column(asked, "ending", "Ending")
    for key in ("turns", "uncertain", "missing"):
        yield _column(asked, key, key.capitalize(), down=True, right=True)


def _column(
    asked: Asked, key: str, title: str, *, down: bool = False, right: bool = False, dimension: bool = False
) -> Column:
    at = asked.sort == key
    next_down = not asked.down if at else down
    href = asked.query(sort=key, down="1" if next_down else "", page="1") or "?"
    return Column(title, href, ("descending" if asked.down else "ascending") if at else "", right, dimension)


def _lines(
    run: Viewed, asked: Asked, rows: Sequence[Row], scale: Scale, holding: Mapping[str, tuple[int, ...]] | None
) -> Iterator[ListLine]:
    ids = [row.sight.id for row in rows]
    doubts, found = run.doubts(ids), _found(run, asked, ids, holding or {})
    for row in rows:
        its = found.get(row.sight.id)
        href = f"conversations/{row.sight.place}{asked.query()}" + (f"#turn-{its.turn}" if its else "")
        yield ListLine(_line(row, scale, doubts.get(row.sight.id, Doubts())), href, its)


def _found(
    run: Viewed, asked: Asked, ids: Sequence[str], holding: Mapping[str, tuple[int, ...]]
) -> Mapping[str, Found]:
    texts = run.texts({id: holding[id][0] for id in ids if id in holding})
    return {
        id: Found(holding[id][0], _around(marked(text, asked.words)), len(holding[id]) - 1)
        for id, text in texts.items()
    }


def _around(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The first place that was found, with some text on both sides."""
    before, found, after = parts[:3]
    left = f"… {before.text[-AROUND:]}" if len(before.text) > AROUND else before.text
    right = f"{after.text[:AROUND]} …" if len(after.text) > AROUND else after.text
    return Part(left, False), found, Part(right, False)


def _line(row: Row, scale: Scale, doubts: Doubts) -> Line:
    sight = row.sight
    cells = tuple(cell(row.ratings[d], scale) if d in row.ratings else NOT_YET for d in scale.dimensions)
    return Line(
        anchor=f"c{sight.place}",
        id=visible(sight.id),
        persona=visible(sight.persona),
        group=row.group,
        group_place=scale.groups.index(row.group),
        ending=ENDINGS[sight.ending],
        turns=sight.turns,
        cells=cells,
        worst=max((c.place for c in cells), default=-1),
        uncertain=doubts.uncertain,
        missing=doubts.missing,
        words="",
    )
