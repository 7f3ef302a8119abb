"""Ratings from a table and from runs, brought together and compared. Knows no way to show what comes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from vera_local.errors import UserError
from vera_local.run.labels_file import Cleaning, Layout, Table, must_be_known, read_labels
from vera_local.run.rated_runs import CLUSTERS, RatedRuns, read_runs
from vera_local.score.agreement import MISSING
from vera_local.score.estimate import Sampling
from vera_local.score.labels import Labels, Rated, Words, gather
from vera_local.score.raters import Question, Report, examine

MAJORITY = "majority"
"""The reference that is no single rater."""


@dataclass(frozen=True)
class Asked:
    """What a user asks. `labels` and `runs`: where ratings are; one of them at least.

    `scale`: the ordered words of a table, `off_scale` those apart from it; the runs' bundle says them for both.
    `raters`, `majority_of`: names or patterns of them (`gpt*`); none: all. `reference`: a rater or `majority`.
    """

    labels: Path | None
    runs: tuple[Path, ...]
    layout: Layout
    cleaning: Cleaning
    scale: tuple[str, ...] = ()
    off_scale: tuple[str, ...] = ()
    raters: tuple[str, ...] = ()
    reference: str | None = None
    majority_of: tuple[str, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(frozen=True)
class Agreed:
    """What was compared, how, and what was found; `notes` tell what a reader must know of the input."""

    labels: Labels
    question: Question
    sampling: Sampling
    report: Report
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Gathered:
    """`people`: the raters of a table beside runs; `joined`: raters that are the majority of others."""

    labels: Labels
    notes: tuple[str, ...]
    people: tuple[str, ...] = ()
    joined: frozenset[str] = frozenset()


def agree(asked: Asked) -> Agreed:
    """Read, compare and report; raises UserError for input that cannot be understood or gives nothing to compare."""
    gathered = _gather(asked)
    labels, question = gathered.labels, _question(asked, gathered)
    _must_overlap(labels, question)
    blind = question.reference and labels.chatbots is None
    report = examine(labels, question, asked.sampling)
    return Agreed(labels, question, asked.sampling, report, (*gathered.notes, *([_blind(asked)] if blind else [])))


def _blind(asked: Asked) -> str:
    if asked.labels is None:
        return "The runs do not say of each conversation which chatbot held it: there is no baseline that knows it."
    return "The baseline that knows the chatbot needs its column: name it with --chatbot."


def _gather(asked: Asked) -> _Gathered:
    _must_have_use(asked)
    if not asked.runs:
        if asked.labels is None:
            raise UserError("Name runs, or a table of ratings with --labels; see vera-local agree --help")
        table = read_labels(asked.labels, asked.layout, asked.cleaning)
        labels = _from_table(asked, table)
        return _Gathered(labels, (*table.notes, *_alike(labels.words.all)))
    runs = read_runs(asked.runs, (asked.layout.cluster or CLUSTERS)[0])
    if asked.labels is not None:
        # What is drawn together is said by the runs.
        table = read_labels(asked.labels, replace(asked.layout, cluster=()), asked.cleaning)
        return _from_both(asked.labels, asked.cleaning, table, runs)
    chatbots = runs.chatbots if runs.chatbots.keys() >= {row.item for row in runs.rows} else None
    labels = gather(runs.rows, runs.words, dimensions=runs.dimensions, clusters=runs.clusters, chatbots=chatbots)
    return _Gathered(labels, runs.notes, joined=runs.joined)


def _must_have_use(asked: Asked) -> None:
    """UserError for options that would change nothing."""
    if asked.runs and (asked.scale or asked.off_scale):
        raise UserError(
            "--scale and --off-scale are for a table alone: the bundle of the runs says what ratings there are"
        )
    words = (*asked.scale, *asked.off_scale)
    if twice := next((word for word in words if words.count(word) > 1), None):
        raise UserError(f"--scale, --off-scale: '{twice}' is named twice; a rating has one place")
    if asked.off_scale and not asked.scale:
        raise UserError("--off-scale is for words beside --scale, which is not given")
    of_table = replace(asked.layout, cluster=()) != Layout((), ()) or asked.cleaning != Cleaning()
    if asked.labels is None and asked.runs and of_table:
        raise UserError("--item, --ratings and what goes with them are for a table of ratings: name it with --labels")


def _from_table(asked: Asked, table: Table) -> Labels:
    if not table.rows:
        raise UserError(f"{asked.labels} holds no rating; see --ratings, --missing and --without")
    words = Words(asked.scale, asked.off_scale) if asked.scale else Words((), _words(table.rows))
    _must_be_words(table.rows, words, asked.cleaning.missing)
    return gather(table.rows, words, dimensions=table.dimensions, clusters=table.clusters, chatbots=table.chatbots)


def _words(rows: Iterable[Rated]) -> tuple[str, ...]:
    """The words that occur, numbers by their size."""
    found = {row.rating for row in rows}
    numbers = all(word.removeprefix("-").isdecimal() for word in found)
    return tuple(sorted(found, key=int) if numbers else sorted(found))


def _alike(words: Iterable[str]) -> Iterator[str]:
    """A note on words that are written differently and may mean the same: `Yes` and `yes`, 1 and 1.0."""
    first: dict[str | float, str] = {}
    for word in words:
        meant = first.setdefault(_meaning(word), word)
        if meant != word:
            yield f"'{word}' and '{meant}' count as two ratings; --map-rating '{word}={meant}' makes them one."


def _meaning(word: str) -> str | float:
    try:
        return float(word)
    except ValueError:
        return " ".join(word.casefold().split())


def _must_be_words(rows: Iterable[Rated], words: Words, missing: Iterable[str]) -> None:
    for row in rows:
        must_be_known([row.rating], (*words.all, *sorted(missing)), row.place, "rating")


def _from_both(file: Path, cleaning: Cleaning, table: Table, runs: RatedRuns) -> _Gathered:
    """Joined on the conversation; what a table says of an item counts where no run knows it."""
    must_be_known({row.dimension: None for row in table.rows}, runs.dimensions, f"{file} (see --map)", "dimension")
    _must_be_words(table.rows, runs.words, cleaning.missing)
    people, judges = ({row.rater: None for row in rows} for rows in (table.rows, runs.rows))
    if both := people.keys() & judges.keys():
        raise UserError(f"{file}: rater '{min(both)}' has the name of a judge of the runs; rename one of them")
    items = _joined(table, runs)
    found = sum(item in runs.clusters for item in items.values())
    if not found:
        one, other = (next(iter(names), "none") for names in (items, runs.clusters))
        raise UserError(
            f"{file}: no item (such as '{one}') is a conversation of the runs (such as '{other}'); see --item"
        )
    labels = gather(
        [*(row._replace(item=items[row.item]) for row in table.rows), *runs.rows],
        runs.words,
        dimensions=runs.dimensions,
        clusters=_renamed(table.clusters, items) | runs.clusters,
    )
    note = f"{found} of {len(items)} items of {file} are conversations of the runs."
    chatbots = _renamed(table.chatbots or {}, items) | runs.chatbots
    known = tuple(chatbots[item] for item in labels.items) if chatbots.keys() >= set(labels.items) else None
    whole = replace(labels, chatbots=known)
    return _Gathered(whole, (*table.notes, *runs.notes, note), tuple(people), runs.joined)


def _joined(table: Table, runs: RatedRuns) -> dict[str, str]:
    """Item of the table -> the run's: a conversation of that id, or the only one whose id goes on with _ behind it."""
    heads: dict[str, list[str]] = {}
    for id, item in runs.names.items():
        heads.setdefault(id.partition("_")[0], []).append(item)
    by_head = {head: items[0] for head, items in heads.items() if len(items) == 1}
    return {item: runs.names.get(item) or by_head.get(item, item) for item in table.clusters}


def _renamed(facts: Mapping[str, str], items: Mapping[str, str]) -> dict[str, str]:
    return {items[item]: fact for item, fact in facts.items()}


def _question(asked: Asked, gathered: _Gathered) -> Question:
    labels, people = gathered.labels, gathered.people
    chosen = _matching(asked.raters, labels.raters, "--raters") or labels.raters
    reference = _reference(asked, labels, people)
    everyone = tuple(dict.fromkeys((*chosen, *reference)))
    if len(everyone) < 2:
        raise UserError(f"Only one rater ('{everyone[0]}') is there to compare; name two or more")
    judged = tuple(rater for rater in chosen if rater not in reference)
    voices = [rater for rater in everyone if rater not in gathered.joined]
    return Question(_panels(voices, reference, people), reference, judged, gathered.joined)


def _reference(asked: Asked, labels: Labels, people: tuple[str, ...]) -> tuple[str, ...]:
    """The rater or raters that are right by definition; people beside judges are, where nothing else is said."""
    members = _matching(asked.majority_of, labels.raters, "--majority-of")
    match asked.reference:
        case None:
            return members or people
        case rater if rater == MAJORITY:
            return members or people or labels.raters
        case rater:
            must_be_known([rater], labels.raters, "--reference", "rater")
            return (rater,)


def _matching(patterns: Sequence[str], names: Sequence[str], option: str) -> tuple[str, ...]:
    """The names that any pattern fits; UserError for a pattern that fits none."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            must_be_known([pattern], names, option, "rater")
    return tuple(name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns))


def _panels(everyone: Sequence[str], reference: Sequence[str], people: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Those who are compared among themselves; a single reference is not one of them."""
    left = [rater for rater in everyone if (rater,) != tuple(reference)]
    first = people or (reference if 1 < len(reference) < len(left) else ())
    one, other = ("people", "judges") if people else ("raters of the majority", "other raters" if first else "raters")
    panels = {one: tuple(r for r in left if r in first), other: tuple(r for r in left if r not in first)}
    return {name: raters for name, raters in panels.items() if raters}


def _must_overlap(labels: Labels, question: Question) -> None:
    """UserError where no two of the raters have rated the same item in the same dimension."""
    raters = dict.fromkeys((*question.reference, *(r for panel in question.panels.values() for r in panel)))
    codes = labels.of(tuple(raters)).codes
    if not ((codes != MISSING).sum(axis=2) > 1).any():
        raise UserError(f"No item was rated by two of the raters ({', '.join(raters)}); see --item and --rater")
