"""A run's conversations and what its judges said of them, for a reader. Writes nothing and opens no model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from vera_local.bundle import Bundle, Rubric
from vera_local.errors import UserError
from vera_local.judge.jury import JURY
from vera_local.report.reading import Opinion, listing, reading
from vera_local.run.cards import cards_of, facts, warnings
from vera_local.run.evaluate import must_hold_run
from vera_local.run.juries import Bench
from vera_local.run.manifest import check_bundle
from vera_local.run.publishing import bench_of
from vera_local.run.store import Store
from vera_local.run.verdicts import row_of


def read_run(folder: Path, bundle: Bundle, conversation: str | None, judge: str | None) -> str:
    """All conversations with their ratings, or one with the path of each judge, or of the one that is named.

    Raises UserError for a conversation or a judge that the run has not, naming what it has.
    """
    check_bundle(folder, must_hold_run(folder), bundle)
    with Store.read(folder) as store:
        judges = bench_of(folder, bundle, store)
        names = _judges(judges, store)
        if judge is not None:
            _known(judge, names, folder, "judge")
            names = (judge,)
        if conversation is None:
            text = _listing(store, judges, names, bundle.rubric)
        else:
            _known(conversation, (head.id for head in store.heads()), folder, "conversation")
            told = [_read(store, judges, conversation, name, bundle.rubric) for name in names]
            text = reading(store.conversation(conversation), told, bundle.rubric)
    warned = warnings({judge: facts(card) for judge, card in cards_of(folder, bundle).items()})
    return "\n".join((text.rstrip("\n"), *(["", *warned] if warned else [])))


def _judges(judges: Bench, store: Store) -> tuple[str, ...]:
    """All that can be asked for: every judge with a verdict or rating, and every joined one."""
    names = {*judges.ratings, *store.judges()}
    return tuple(sorted(names - {JURY})) + ((JURY,) if JURY in names else ())


def _listing(store: Store, judges: Bench, names: Sequence[str], rubric: Rubric) -> str:
    doubtful = Counter((g.conversation, g.judge) for g in store.all_verdicts() if g.verdict.uncertain)

    def opinions(conversation: str) -> Iterator[Opinion]:
        for name in names:
            yield replace(_opinion(judges, conversation, name), doubtful=doubtful[conversation, name])

    return listing(store.heads(), opinions, rubric)


def _read(store: Store, judges: Bench, conversation: str, judge: str, rubric: Rubric) -> Opinion:
    """With its path."""
    rows = tuple(row_of(given, rubric) for given in store.path(conversation, judge))
    return replace(_opinion(judges, conversation, judge), rows=rows, doubtful=sum(bool(row.doubt) for row in rows))


def _opinion(judges: Bench, conversation: str, judge: str) -> Opinion:
    ratings = judges.ratings.get(judge, {}).get(conversation, ())
    return Opinion(judge, ratings, members=judges.juries.get(judge, ()))


def _known(name: str, known: Iterable[str], folder: Path, kind: str) -> None:
    names = list(known)
    if name in names:
        return
    nearest = get_close_matches(name, names, 5, 0) or ["none"]
    raise UserError(f"{folder} has no {kind} {name!r}; it has {len(names)}, nearest first: {', '.join(nearest)}")
