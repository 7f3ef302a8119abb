"""A run as somebody looks at it, page by page: never more of it than a page shows. Writes nothing, scores nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from vera_local.bundle import Bundle
from vera_local.errors import UserError
from vera_local.report.decisions import findings
from vera_local.report.reading import Opinion
from vera_local.report.record import Held, Record
from vera_local.report.usage import Work
from vera_local.run import manifest
from vera_local.run.cards import cards_of, warnings
from vera_local.run.cards import facts as card_facts
from vera_local.run.evaluate import bundle_of_run, must_hold_run
from vera_local.run.folder import at_work
from vera_local.run.glances import Counts, Doubts, Judged, Sight
from vera_local.run.identities import simulators_of
from vera_local.run.juries import Bench, bench
from vera_local.run.parties import chatbot_of, instrument_of, judge_records, judges_in_order
from vera_local.run.reported import read_scores
from vera_local.run.reproducing import again
from vera_local.run.stats import work_in
from vera_local.run.store import Store
from vera_local.run.verdicts import row_of
from vera_local.score import UNKNOWN, Scores


class Stage(StrEnum):
    """How far a run is, in words."""

    AT_WORK = "at work"
    TALKING = "stopped before all conversations had ended"
    UNJUDGED = "not judged"
    JUDGING = "stopped before all conversations were rated"
    DONE = "finished"


class Advance(NamedTuple):
    """How far a run is, in numbers: one line for each judge, of its conversations that are fit to judge."""

    stage: Stage
    counts: Counts
    judges: tuple[Judged, ...]


class Row(NamedTuple):
    """A conversation in a list: the group of its persona, and a judge's rating of each dimension that it has rated."""

    sight: Sight
    group: str
    ratings: Mapping[str, str | None]


class Overview(NamedTuple):
    """A run; `judges` have scores, `judge` is the one whose are shown, `asker` who put its questions: a joined judge's
    first member. The record holds the conversations that are examples of what decided the asker's ratings."""

    record: Record
    judges: tuple[str, ...]
    judge: str | None
    asker: str | None


class Title(NamedTuple):
    """What a list of runs says of one: its chatbot, bundle, judges, and when it was begun."""

    chatbot: str
    bundle: str
    judges: tuple[str, ...]
    created: str


def title_of(folder: Path) -> Title:
    """UserError where the folder holds no run, or one that cannot be read."""
    begun = must_hold_run(folder)
    bundle = begun["identity"]["bundle"]
    return Title(
        chatbot_of(begun),
        f"{bundle.get('name', '')} {bundle.get('version', '')}".strip(),
        tuple(begun["judges"]),
        str(begun.get("created", "")),
    )


def advance_of(folder: Path) -> Advance:
    """How far the run in `folder` is; UserError where its store cannot be read."""
    entered = tuple(must_hold_run(folder)["judges"])
    with Store.look(folder) as store:
        counts, found = store.glances.counts(), {j.judge: j for j in store.glances.judged()}
    judges = tuple(found.get(name, Judged(name, 0, 0)) for name in dict.fromkeys((*entered, *found)))
    return Advance(_stage(folder, counts, judges), counts, judges)


def _stage(folder: Path, counts: Counts, judges: tuple[Judged, ...]) -> Stage:
    if at_work(folder):
        return Stage.AT_WORK
    if counts.ended < counts.conversations or not counts.conversations:
        return Stage.TALKING
    if not judges:
        return Stage.UNJUDGED
    return Stage.JUDGING if any(j.rated < counts.judgeable for j in judges) else Stage.DONE


def known_judge(judge: str | None, names: Sequence[str]) -> str | None:
    """The judge that was asked for, or else the first, or None where there is none; UserError for an unknown one."""
    if judge is not None and judge not in names:
        raise UserError(f"No judge of this run is called {judge[:80]!r}: there are {', '.join(names) or 'none'}")
    return judge or next(iter(names), None)


@dataclass(frozen=True)
class Viewed:
    """A run with its manifest as it was when it was opened, and the bundle that it was made with."""

    folder: Path
    begun: Mapping[str, Any]
    bundle: Bundle

    @classmethod
    def open(cls, folder: Path) -> Viewed:
        """UserError where there is no run, or its bundle is no longer the one that it was made with."""
        begun, bundle = must_hold_run(folder), bundle_of_run(folder)
        manifest.check_bundle(folder, begun, bundle)
        return cls(folder, begun, bundle)

    @cached_property
    def _groups(self) -> dict[str, str]:
        return {persona.name: persona.group for persona in self.bundle.personas}

    def overview(self, judge: str | None) -> Overview:
        """The run as it was scored last, with the ratings of one judge (None: of the first that has scores).

        UserError where that judge has none. How judges agree and how personas were played is left out: to find it, all
        of the run would have to be read.
        """
        scores = read_scores(self.folder)
        with Store.look(self.folder) as store:
            judges = self._bench(store)
            names = tuple(name for name in judges_in_order(judges) if name in scores)
            chosen = known_judge(judge, names)
            asker = judges.members(chosen)[0] if chosen else None
            held = tuple(self._examples(store, judges, scores.get(asker or "")))
            return Overview(self._record(scores, judges, held, work_in(store, self.begun)), names, chosen, asker)

    def _record(self, scores: dict[str, Scores], judges: Bench, held: tuple[Held, ...], work: Work) -> Record:
        made, cards = again(self.begun), cards_of(self.folder, self.bundle)
        return Record(
            name=self.folder.resolve().name,
            created=str(self.begun.get("created", "")),
            instrument=instrument_of(self.bundle),
            chatbot=chatbot_of(self.begun),
            players=simulators_of(self.begun["identity"]),
            judges=tuple(judge_records(judges, (), self.begun["judges"], cards)),
            conversations=held,
            scores=scores,
            manifest=self.begun,
            commands=made.commands,
            config=made.config,
            work=work,
            warnings=warnings({judge: card_facts(card) for judge, card in cards.items()}),
            demonstration=manifest.demonstrates(self.folder),
        )

    def _examples(self, store: Store, judges: Bench, scores: Scores | None) -> Iterator[Held]:
        wanted = {id for decision in findings(scores) for id in decision.examples} if scores else set()
        names = judges_in_order(judges, store.judges())
        for sight in store.glances.sights():
            if sight.id in wanted:
                yield self._held(store, judges, names, sight)

    def rows(self, judge: str | None) -> tuple[tuple[str, ...], tuple[Row, ...]]:
        """The judges that have rated anything, and all conversations with the ratings of one (None: of the first)."""
        with Store.look(self.folder) as store:
            judges, sights = self._bench(store), store.glances.sights()
        names = judges_in_order(judges)
        chosen = known_judge(judge, names)
        walks = judges.ratings[chosen] if chosen else {}
        rated = {id: {r.dimension: r.rating for r in walk} for id, walk in walks.items()}
        return names, tuple(Row(s, self._groups.get(s.persona, UNKNOWN), rated.get(s.id, {})) for s in sights)

    def doubts(self, conversations: Sequence[str]) -> Mapping[str, Doubts]:
        """Answers of these conversations that a person should look at."""
        with Store.look(self.folder) as store:
            return store.glances.doubts(conversations)

    def holding(self, words: str) -> dict[str, tuple[int, ...]]:
        """Conversation -> the turns that hold these words."""
        with Store.look(self.folder) as store:
            return store.glances.holding(words)

    def texts(self, turns: Mapping[str, int]) -> dict[str, str]:
        """Of each conversation the text of one turn; KeyError where nothing was said in it."""
        with Store.look(self.folder) as store:
            return {id: store.glances.text(id, turn) for id, turn in turns.items()}

    def conversation(self, place: int) -> Held:
        """The conversation at this place (from 1), with what every judge says of it; KeyError where there is none."""
        with Store.look(self.folder) as store:
            for sight in store.glances.sights():
                if sight.place == place:
                    judges = self._bench(store)
                    return self._held(store, judges, judges_in_order(judges, store.judges()), sight)
        raise KeyError(place)

    def _bench(self, store: Store) -> Bench:
        return bench(store.ratings(), self.begun["judges"], self.bundle.rubric)

    def _held(self, store: Store, judges: Bench, names: Sequence[str], sight: Sight) -> Held:
        c = store.conversation(sight.id)
        opinions = tuple(
            Opinion(
                name,
                judges.ratings.get(name, {}).get(c.id, ()),
                tuple(row_of(given, self.bundle.rubric) for given in store.path(c.id, name)),
                judges.juries.get(name, ()),
            )
            for name in names
        )
        return Held(sight.place, c, self._groups.get(c.persona, UNKNOWN), opinions)
