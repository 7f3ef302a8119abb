"""A run's conversations and what its judges said of them, for a reader. Writes nothing and opens no model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from vera_local.bundle import Bundle
from vera_local.conversation import Conversation
from vera_local.errors import UserError
from vera_local.judge.jury import JURY
from vera_local.report.reading import Opinion, listing, reading
from vera_local.report.verdicts import VerdictRow
from vera_local.run.cards import cards_of, facts, warnings
from vera_local.run.evaluate import bench_of, must_hold_run
from vera_local.run.juries import Bench
from vera_local.run.manifest import check_bundle
from vera_local.run.store import Store
from vera_local.run.verdicts import row_of


@dataclass(frozen=True)
class Held:
    """What a run holds: conversations, who judged, and each verdict in the order it was given."""

    conversations: tuple[Conversation, ...]
    bench: Bench
    rows: tuple[VerdictRow, ...]
    warnings: tuple[str, ...]

    @property
    def judges(self) -> tuple[str, ...]:
        """All that can be asked for: every judge with a verdict or rating, and every joined one."""
        names = {*self.bench.ratings, *(row.judge for row in self.rows)}
        return tuple(sorted(names - {JURY})) + ((JURY,) if JURY in names else ())


def read_run(folder: Path, bundle: Bundle, conversation: str | None, judge: str | None) -> str:
    """All conversations with their ratings, or one with the path of each judge, or of the one that is named.

    Raises UserError for a conversation or a judge that the run has not, naming what it has.
    """
    held = _held(folder, bundle)
    if judge is not None:
        _known(judge, held.judges, folder, "judge")
    if conversation is None:
        judges = held.judges if judge is None else (judge,)
        opinions = {c.id: [_opinion(held, c.id, name) for name in judges] for c in held.conversations}
        return _warned(held, listing(held.conversations, opinions, bundle.rubric))
    by_id = {c.id: c for c in held.conversations}
    _known(conversation, by_id, folder, "conversation")
    names = held.judges if judge is None else (judge,)
    told = [_opinion(held, conversation, name) for name in names]
    return _warned(held, reading(by_id[conversation], told, bundle.rubric))


def _warned(held: Held, text: str) -> str:
    """The text with the judges not to be relied on named below it."""
    return "\n".join((text.rstrip("\n"), *(["", *held.warnings] if held.warnings else [])))


def _held(folder: Path, bundle: Bundle) -> Held:
    check_bundle(folder, must_hold_run(folder), bundle)
    with Store.open(folder) as store:
        rows = tuple(map(row_of, store.all_verdicts()))
        cards = {judge: facts(card) for judge, card in cards_of(folder, bundle).items()}
        return Held(tuple(store.conversations()), bench_of(folder, bundle, store), rows, warnings(cards))


def _opinion(held: Held, conversation: str, judge: str) -> Opinion:
    return Opinion(
        judge=judge,
        ratings=held.bench.ratings.get(judge, {}).get(conversation, ()),
        rows=tuple(row for row in held.rows if (row.conversation, row.judge) == (conversation, judge)),
        members=held.bench.juries.get(judge, ()),
    )


def _known(name: str, known: Iterable[str], folder: Path, kind: str) -> None:
    names = list(known)
    if name in names:
        return
    nearest = get_close_matches(name, names, 5, 0) or ["none"]
    raise UserError(f"{folder} has no {kind} {name!r}; it has {len(names)}, nearest first: {', '.join(nearest)}")
