"""One conversation as a page: its turns, and beside them what each judge said. Knows no store and no address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vera_local.bundle import Rubric
from vera_local.report.html.modes import SPEAKERS
from vera_local.report.html.table import Cell, cell
from vera_local.report.html.text import visible
from vera_local.report.reading import Opinion
from vera_local.report.record import Held
from vera_local.report.terminal import ENDINGS
from vera_local.report.verdicts import VerdictRow
from vera_local.run.glances import words_pattern
from vera_local.score import Scale


@dataclass(frozen=True)
class Part:
    """A piece of a text; `found`: it is what was searched for."""

    text: str
    found: bool


@dataclass(frozen=True)
class Named:
    """A question that names a turn as evidence; `id`: where the page has the question."""

    id: str
    words: str


@dataclass(frozen=True)
class Turn:
    """A message; `named_by`: the questions for which it is evidence."""

    number: int
    speaker: str
    by_user: bool
    parts: tuple[Part, ...]
    named_by: tuple[Named, ...]


@dataclass(frozen=True)
class Step:
    """A question of a judge's path; `decided`: the dimensions that it gave a rating below the best, and which."""

    id: str
    question: str
    wording: str
    row: VerdictRow
    answer: str
    decided: tuple[tuple[str, Cell], ...]
    told: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """A dimension with the questions that were asked of it; `rating` None: the judge has not rated it."""

    dimension: str
    rating: Cell | None
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Judged:
    """What one judge said; who joins others has no path of its own."""

    judge: str
    members: tuple[str, ...]
    rated: bool
    dimensions: tuple[Asked, ...]
    has_path: bool


@dataclass(frozen=True)
class Reading:
    """A conversation to read."""

    place: int
    id: str
    persona: str
    group: str
    ending: str
    turns: tuple[Turn, ...]
    judges: tuple[Judged, ...]


def reading(held: Held, rubric: Rubric, scale: Scale, words: str) -> Reading:
    """The conversation with all that its judges said; `words` are marked in it."""
    c = held.conversation
    opinions = [opinion for opinion in held.opinions if opinion.ratings or opinion.rows]
    named = _named(opinions)
    turns = tuple(
        Turn(n, SPEAKERS[m.speaker], SPEAKERS[m.speaker] == "User", marked(m.text, words), named.get(n, ()))
        for n, m in enumerate(c.messages, 1)
    )
    return Reading(
        place=held.place,
        id=visible(c.id),
        persona=visible(c.persona),
        group=held.group,
        ending=ENDINGS[c.ending],
        turns=turns,
        judges=tuple(_judged(place, opinion, rubric, scale) for place, opinion in enumerate(opinions)),
    )


def marked(text: str, words: str) -> tuple[Part, ...]:
    """The text in pieces, those with the words apart; all of it is in them."""
    if not words:
        return (Part(visible(text), False),)
    parts, at = [], 0
    for found in words_pattern(words).finditer(text):
        parts += [Part(visible(text[at : found.start()]), False), Part(visible(found.group()), True)]
        at = found.end()
    return (*parts, Part(visible(text[at:]), False))


def _named(opinions: Sequence[Opinion]) -> Mapping[int, tuple[Named, ...]]:
    """Turn -> the questions that name it; with the judge's name where several have paths."""
    several = sum(bool(opinion.rows) for opinion in opinions) > 1
    found: dict[int, tuple[Named, ...]] = {}
    for judge, opinion in enumerate(opinions):
        for row in opinion.rows:
            words = f"question {row.question}" + (f" by {row.judge}" if several else "")
            for turn in row.evidence or ():
                found[turn] = (*found.get(turn, ()), Named(_id(judge, row), words))
    return found


def _id(judge: int, row: VerdictRow) -> str:
    return f"step-{judge}-{row.place}"


def _judged(judge: int, opinion: Opinion, rubric: Rubric, scale: Scale) -> Judged:
    ratings = {r.dimension: cell(r.rating, scale) for r in opinion.ratings}
    steps: dict[str, list[Step]] = {}
    for row in opinion.rows:
        steps.setdefault(rubric.by_id[row.question].dimension, []).append(_step(judge, row, opinion, rubric, scale))
    return Judged(
        judge=opinion.judge,
        members=opinion.members,
        rated=bool(opinion.ratings),
        dimensions=tuple(Asked(d, ratings.get(d), tuple(steps.get(d, ()))) for d in rubric.dimensions),
        has_path=bool(opinion.rows),
    )


def _step(judge: int, row: VerdictRow, opinion: Opinion, rubric: Rubric, scale: Scale) -> Step:
    best = rubric.ratings[0]
    return Step(
        id=_id(judge, row),
        question=row.question,
        wording=rubric.by_id[row.question].text,
        row=row,
        answer=_answer(row),
        decided=tuple(
            (r.dimension, cell(r.rating, scale))
            for r in opinion.ratings
            if row.question in r.decided_by and r.rating != best
        ),
        told=tuple(_told(row)),
    )


def _answer(row: VerdictRow) -> str:
    if row.answer is None:
        return f"no answer ({row.state})"
    return f"{row.answer} (the only option; no model was asked)" if row.mode == "auto" else row.answer


def _told(row: VerdictRow) -> Iterator[str]:
    """Why and how sure, line by line."""
    if row.rationale.strip():
        yield visible(row.rationale.strip())
    if row.probability is not None and row.mass is not None:
        yield f"Probability of this answer: {row.probability:.2f}; all options together: {row.mass:.2f}."
    if row.left_out:
        yield f"Not shown to the judge: {row.left_out}."
    if row.detail:
        yield visible(row.detail)
