"""A run from plan to results: simulate, judge, score, each only as far as it is still missing. Prints no table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from vera_local.bundle import Bundle, load_bundle
from vera_local.conversation import Conversation
from vera_local.errors import UserError
from vera_local.report.files import Instrument, write_results, write_transcripts
from vera_local.report.simulation import SIMULATOR, Played, write_simulation
from vera_local.report.verdicts import uncertain, write_verdicts
from vera_local.run import manifest
from vera_local.run.asked import asked_frame
from vera_local.run.cards import cards_of, warnings
from vera_local.run.cards import facts as card_facts
from vera_local.run.chatbots import check_chatbot
from vera_local.run.checking import check_stage, unchecked
from vera_local.run.checks import check_judges
from vera_local.run.config_file import load_config
from vera_local.run.failure import cause
from vera_local.run.folder import locked, prepare_folder
from vera_local.run.host import Host, Key, Opener, Opening, key_of, start
from vera_local.run.identities import POOLED
from vera_local.run.judging import judge_stage, unrated
from vera_local.run.juries import Bench, bench, facts
from vera_local.run.needs import needs_of
from vera_local.run.plan import Plan
from vera_local.run.played import played
from vera_local.run.progress import Watcher
from vera_local.run.seats import Seat
from vera_local.run.simulating import simulate_stage
from vera_local.run.store import NAME as STORE
from vera_local.run.store import Store
from vera_local.run.verdicts import alike_between_judges, alike_in_repeats, row_of
from vera_local.score import UNKNOWN, Grouping, Rating, Scale, Scores, ratings_frame, score_by_judge
from vera_local.score.alike import Share
from vera_local.selftest import Card


@dataclass(frozen=True)
class Outcome:
    """What a run holds now: its conversations and, by judge, its scores.

    `bench` tells which judges these are; repeats of one judge, and all judges, are also scored together.
    """

    folder: Path
    bundle: Bundle
    conversations: tuple[Conversation, ...]
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
    played: tuple[Played, ...]
    """How each conversation was played, where models of this run played the personas."""
    demonstration: bool
    """Whether the embedded model had a part in it."""


async def run(plan: Plan, opener: Opener, watcher: Watcher, *, judge: bool = True) -> Outcome:
    """Begin the plan's run in its folder, or go on with it, until all is simulated and (with `judge`) judged.

    Raises UserError where the folder holds another run, EngineDied where an engine is lost; both leave all that was
    finished in the folder.
    """
    await _preflight(plan, opener, judge=judge)
    prepare_folder(plan.out)
    with locked(plan.out):
        manifest.enter(plan)
        if judge:
            manifest.enter_judges(plan)
        with Store.open(plan.out) as store:
            store.begin(plan.conversations())
            await _stages(plan, store, opener, watcher, simulate=True, judge=judge)
            return publish(plan.out, plan.bundle, store)


async def judge_run(plan: Plan, opener: Opener, watcher: Watcher) -> Outcome:
    """Judge the conversations that the plan's folder holds, simulating none; raises as `run`."""
    must_hold_run(plan.out)
    with locked(plan.out):
        manifest.enter_judges(plan)
        with Store.open(plan.out) as store:
            await _stages(plan, store, opener, watcher, simulate=False, judge=True)
            return publish(plan.out, plan.bundle, store)


async def _preflight(plan: Plan, opener: Opener, *, judge: bool) -> None:
    """Find every model before anything is written; servers are asked only for a run that is yet to begin."""
    manifest.check(plan, judge=judge)
    # Raises where these models cannot work on this machine.
    Host(opener, needs_of(plan, simulate=True, judge=judge))
    if manifest.read(plan.out) is not None:
        # The transcripts are written when the first stage ends; before, a run may have been stopped with nothing yet.
        _must_be_whole(plan.out, begun=(plan.out / "conversations.jsonl").exists())
        return
    players = (*plan.speakers, *(seat.player for seat in plan.judges if judge))
    for player in {key_of(p): p for p in players if p.url is not None}.values():
        engine = await opener(Opening(player))
        await engine.aclose()
    await check_chatbot(plan)


async def _stages(plan: Plan, store: Store, opener: Opener, watcher: Watcher, *, simulate: bool, judge: bool) -> None:
    simulate = simulate and bool(store.unfinished())
    host = Host(opener, needs_of(plan, simulate=simulate, judge=judge))
    _tell(plan, host, watcher)
    try:
        if simulate:
            await start(host, watcher, *plan.speakers)
            await simulate_stage(plan, store, host.engine, watcher)
        for seats in by_engine(plan.judges) if judge else ():
            await _judge(plan, [seat for seat in seats if unrated(store, seat)], store, host, watcher)
        if judge and plan.config.check_personas and unchecked(plan, store):
            await start(host, watcher, plan.judges[0].player)
            await check_stage(plan, store, host.engine(plan.judges[0].player), watcher)
    except ExceptionGroup as group:
        raise cause(group) from group
    finally:
        await host.aclose()


def _tell(plan: Plan, host: Host, watcher: Watcher) -> None:
    """Note how the engines share the machine, and say so where there was a choice."""
    manifest.enter_residency(plan.out, host.arrangement)
    if sum(map(len, host.arrangement.places.values())) > 1:
        watcher.say(host.arrangement.reason)


def by_engine(seats: Iterable[Seat]) -> list[list[Seat]]:
    """The seats of each engine, so that each is opened once; engines and seats in the order given."""
    groups: dict[Key, list[Seat]] = {}
    for seat in seats:
        groups.setdefault(key_of(seat.player), []).append(seat)
    return list(groups.values())


async def _judge(plan: Plan, seats: Sequence[Seat], store: Store, host: Host, watcher: Watcher) -> None:
    """Judge from seats of one engine, one after another; with none to judge from nothing is opened."""
    if not seats:
        return
    player = seats[0].player
    await start(host, watcher, player)
    engine = host.engine(player)
    await check_judges(engine, seats, watcher.say)
    for seat in seats:
        await judge_stage(plan, seat, store, engine, watcher)


def must_hold_run(folder: Path) -> dict[str, Any]:
    """The manifest of the run in `folder`; UserError where there is none, or where its store is lost."""
    begun = manifest.read(folder)
    if begun is None:
        raise UserError(f"{folder} holds no run; make one with `vera-local run` or `vera-local simulate`")
    if POOLED in begun["identity"]:
        raise UserError(f"{folder} is a pool of runs, which compare can read; name one of its runs, or pool them again")
    _must_be_whole(folder, begun=True)
    return begun


def bundle_of_run(folder: Path) -> Bundle:
    """The bundle that the run in `folder` names; UserError where there is no run or no such bundle."""
    config = load_config(None, {}, must_hold_run(folder)["config"])
    return load_bundle(config.bundle, config.target, config.end_semantics)


def _must_be_whole(folder: Path, *, begun: bool) -> None:
    """UserError where a run that has `begun` lost its store: a new one would pass for it, and its results be lost."""
    store = folder / STORE
    if begun and not (store.is_file() and store.stat().st_size):
        raise UserError(f"{store} is missing or empty, and with it the run; restore it or name another folder")


def score_run(folder: Path, bundle: Bundle, by: Mapping[str, Grouping] | None = None) -> Outcome:
    """Score what a run folder holds, `by` further persona columns, too, and write its results again.

    UserError where it holds no run.
    """
    manifest.check_bundle(folder, must_hold_run(folder), bundle)
    with locked(folder), Store.open(folder) as store:
        return publish(folder, bundle, store, by)


def publish(folder: Path, bundle: Bundle, store: Store, by: Mapping[str, Grouping] | None = None) -> Outcome:
    """Derive all exports of a run from its store."""
    conversations, judges = tuple(store.conversations()), bench_of(folder, bundle, store)
    rows = tuple(map(row_of, store.all_verdicts()))
    frame = _frame(conversations, bundle, judges)
    questions = asked_frame(rows, judges.ratings, bundle.rubric, {c.id: c.persona for c in conversations})
    simulated = played(store, conversations, manifest.simulator_of_repeat(folder))
    groups = {**(by or {}), **_by_simulator(simulated)}
    scores = score_by_judge(frame, _scale(bundle, frame), by=groups, questions=questions)
    write_transcripts(folder, conversations)
    write_verdicts(folder, rows)
    write_simulation(folder, simulated)
    instrument = Instrument(bundle.name, bundle.version, bundle.group_column)
    cards = cards_of(folder, bundle)
    told = {judge: card_facts(card) for judge, card in cards.items()}
    write_results(folder, frame, questions, scores, instrument, facts(judges), told)
    missing = {state.value: n for state, n in store.states().items() if state.value != "answered"}
    return Outcome(
        folder=folder,
        bundle=bundle,
        conversations=conversations,
        bench=judges,
        cards=cards,
        scores=scores,
        uncertain=uncertain(rows),
        repeats=alike_in_repeats(judges, rows),
        agreement=alike_between_judges(judges),
        missing_verdicts=missing,
        reasons=store.reasons(),
        replies=store.faulty_replies(),
        played=simulated,
        demonstration=manifest.demonstrates(folder),
    )


def warned(outcome: Outcome) -> tuple[str, ...]:
    """A sentence for each judge of the run that its self-test found no better than a constant one."""
    return warnings({judge: card_facts(card) for judge, card in outcome.cards.items()})


def _by_simulator(simulated: Sequence[Played]) -> dict[str, Grouping]:
    """Whose conversation each is, where several simulators played."""
    whose = {one.conversation: one.simulator for one in simulated}
    order = tuple(dict.fromkeys(whose.values()))
    return {SIMULATOR: Grouping(whose, order, key="conversation")} if len(order) > 1 else {}


def bench_of(folder: Path, bundle: Bundle, store: Store) -> Bench:
    """Who judged the run in `folder`, and what they came to together."""
    entered = manifest.read(folder)
    assert entered is not None
    return bench(store.ratings(), entered["judges"], bundle.rubric)


def _frame(conversations: Iterable[Conversation], bundle: Bundle, judges: Bench) -> pl.DataFrame:
    by_id = {c.id: c for c in conversations}
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
