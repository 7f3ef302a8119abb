"""All that a run shows, derived from its store and written beside it. Knows no engine, and holds no text of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from vera_local.bundle import Bundle
from vera_local.conversation import Head
from vera_local.report.files import Instrument, write_results, write_transcripts
from vera_local.report.simulation import SIMULATOR, Figures, by_simulator, write_simulation
from vera_local.report.verdicts import VerdictRow, write_verdicts
from vera_local.run import manifest
from vera_local.run.asked import Asked
from vera_local.run.cards import cards_of, warnings
from vera_local.run.cards import facts as card_facts
from vera_local.run.juries import Bench, bench, facts
from vera_local.run.played import played
from vera_local.run.store import Store
from vera_local.run.verdicts import alike_between_judges, alike_in_repeats, row_of
from vera_local.score import UNKNOWN, Grouping, Rating, Scale, Scores, ratings_frame, score_by_judge
from vera_local.score.alike import Share
from vera_local.selftest import Card


@dataclass(frozen=True)
class Outcome:
    """What a run holds now: its conversations without their texts and, by judge, its scores.

    `bench` tells which judges these are; repeats of one judge, and all judges, are also scored together.
    """

    folder: Path
    bundle: Bundle
    conversations: tuple[Head, ...]
    bench: Bench
    cards: dict[str, Card | None]
    """Judge -> what a self-test said of it; None: no self-test is on record."""
    scores: dict[str, Scores]
    uncertain: dict[str, int]
    """Judge -> how many of its answers a person should look at, for the judges that have any."""
    repeats: dict[str, Share]
    """Joined judge -> of the questions that all its repeats asked, those answered alike."""
    agreement: dict[tuple[str, str], Share]
    """Pair of judges -> of the ratings that both gave, those that are equal."""
    missing_verdicts: dict[str, int]
    """Verdict state -> how many verdicts are in it, for the states without an answer."""
    reasons: dict[str, str]
    """Unplanned ending or verdict state -> the first reason that was given for it."""
    replies: tuple[int, int, int]
    """Chatbot messages: all, cut at their token limit, empty."""
    simulators: Figures
    """How the personas were played, where models of this run played them."""
    restarts: int
    """How often engines were opened anew since one was lost, in all that was done for the run."""
    demonstration: bool
    """Whether the embedded model had a part in it."""


def publish(folder: Path, bundle: Bundle, store: Store, by: Mapping[str, Grouping] | None = None) -> Outcome:
    """Derive all exports of a run from its store."""
    heads, judges = store.heads(), bench_of(folder, bundle, store)
    asked, doubts = Asked(judges.ratings, bundle.rubric, {h.id: h.persona for h in heads}), Counter[str]()
    write_transcripts(folder, store.conversations())
    rows = (row_of(given, bundle.rubric) for given in store.all_verdicts())
    write_verdicts(folder, _noted(rows, asked, doubts))
    simulators = manifest.simulator_of_repeat(folder)
    figures = by_simulator(played(store.simulated, heads, simulators))
    write_simulation(folder, figures, played(store.simulated, heads, simulators))
    cards, frame, questions = cards_of(folder, bundle), _frame(heads, bundle, judges), asked.frame()
    scores = score_by_judge(
        frame, _scale(bundle, frame), by={**(by or {}), **_by_simulator(heads, simulators)}, questions=questions
    )
    instrument = Instrument(bundle.name, bundle.version, bundle.group_column)
    told = {judge: card_facts(card) for judge, card in cards.items()}
    write_results(folder, frame, questions, scores, instrument, facts(judges), told)
    return Outcome(
        folder=folder,
        bundle=bundle,
        conversations=heads,
        bench=judges,
        cards=cards,
        scores=scores,
        uncertain=dict(doubts),
        repeats=alike_in_repeats(judges, store),
        agreement=alike_between_judges(judges),
        missing_verdicts={state.value: n for state, n in store.states().items() if state.value != "answered"},
        reasons=store.reasons(),
        replies=store.faulty_replies(),
        simulators=figures,
        restarts=sum(session.restarts for session in store.used.sessions()),
        demonstration=manifest.demonstrates(folder),
    )


def _noted(rows: Iterable[VerdictRow], asked: Asked, doubts: Counter[str]) -> Iterator[VerdictRow]:
    """The rows, on whose way it is noted what was asked and whose answers a person should look at."""
    for row in rows:
        asked.add(row)
        if row.doubt:
            doubts[row.judge] += 1
        yield row


def warned(outcome: Outcome) -> tuple[str, ...]:
    """A sentence for each judge of the run that its self-test found no better than a constant one."""
    return warnings({judge: card_facts(card) for judge, card in outcome.cards.items()})


def _by_simulator(heads: Iterable[Head], simulator_of_repeat: Mapping[int, str]) -> dict[str, Grouping]:
    """Whose conversation each is, where several simulators played."""
    if len(set(simulator_of_repeat.values())) < 2:
        return {}
    whose = {head.id: simulator_of_repeat[head.repeat] for head in heads}
    return {SIMULATOR: Grouping(whose, tuple(dict.fromkeys(whose.values())), key="conversation")}


def bench_of(folder: Path, bundle: Bundle, store: Store) -> Bench:
    """Who judged the run in `folder`, and what they came to together."""
    entered = manifest.read(folder)
    assert entered is not None
    return bench(store.ratings(), entered["judges"], bundle.rubric)


def _frame(heads: Iterable[Head], bundle: Bundle, judges: Bench) -> pl.DataFrame:
    by_id = {head.id: head for head in heads}
    groups = {p.name: p.group for p in bundle.personas}
    return ratings_frame(
        Rating(c.id, c.persona, groups.get(c.persona, UNKNOWN), c.repeat, judge, r.dimension, r.rating)
        for judge in sorted(judges.ratings)
        for c, ratings in ((by_id[id], ratings) for id, ratings in judges.ratings[judge].items())
        for r in ratings
    )


def _scale(bundle: Bundle, frame: pl.DataFrame) -> Scale:
    """The bundle's, with a group for unknown personas where there is one."""
    unknown = UNKNOWN in frame["group"] and UNKNOWN not in bundle.groups
    groups = (*bundle.groups, UNKNOWN) if unknown else bundle.groups
    return Scale(bundle.rubric.ratings, bundle.rubric.not_relevant, bundle.rubric.dimensions, groups)
