"""A run from plan to results: simulate, judge, score, each only as far as it is still missing. Prints no table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vera_local.bundle import Bundle, known_bundles, load_bundle
from vera_local.data import is_place
from vera_local.errors import UserError
from vera_local.run import manifest, network
from vera_local.run.chatbots import check_chatbot
from vera_local.run.cluster.on_ray import on_ray
from vera_local.run.cluster.spread import spread
from vera_local.run.config_file import load_config
from vera_local.run.folder import locked, prepare_folder
from vera_local.run.host import Host, Opener
from vera_local.run.identities import POOLED
from vera_local.run.kept_bundle import keep, kept
from vera_local.run.needs import needs_of
from vera_local.run.plan import Plan
from vera_local.run.players import Player
from vera_local.run.progress import Watcher
from vera_local.run.publishing import Outcome, publish
from vera_local.run.stages import stages
from vera_local.run.store import NAME as STORE
from vera_local.run.store import Store
from vera_local.score import Grouping


async def run(plan: Plan, opener: Opener, watcher: Watcher, *, judge: bool = True) -> Outcome:
    """Begin the plan's run in its folder, or go on with it, until all is simulated and (with `judge`) judged.

    Raises UserError where the folder holds another run, EngineDied where an engine is lost, WentBeyond where something
    beyond this machine was asked for that the config does not name; all leave what was finished in the folder.
    """
    network.allow(plan)
    await _preflight(plan, opener, judge=judge)
    with begun(plan, judge=judge) as store:
        with network.logged(plan, watcher.say):
            await _work_off(plan, store, opener, watcher, simulate=True, judge=judge)
        return publish(plan.out, plan.bundle, store)


@contextmanager
def begun(plan: Plan, *, judge: bool) -> Iterator[Store]:
    """The store of the plan's run, begun where it was not, while its folder is held; UserError where it cannot be."""
    must_go_on(plan.out)
    prepare_folder(plan.out)
    with locked(plan.out):
        manifest.enter(plan)
        keep(plan.out, plan.bundle)
        if judge:
            manifest.enter_judges(plan)
        with Store.open(plan.out) as store:
            store.begin(plan.conversations())
            yield store


async def judge_run(plan: Plan, opener: Opener, watcher: Watcher) -> Outcome:
    """Judge the conversations that the plan's folder holds, simulating none; raises as `run`."""
    before = must_hold_run(plan.out)["judges"]
    manifest.must_hold_texts(plan.out)
    network.allow(plan)
    new = [seat.player for seat in plan.judges if seat.name not in before]
    await ask_servers(new, opener)
    with locked(plan.out):
        manifest.enter_judges(plan)
        with Store.open(plan.out) as store:
            with network.logged(plan, watcher.say):
                await _work_off(plan, store, opener, watcher, simulate=False, judge=True)
            return publish(plan.out, plan.bundle, store)


async def _work_off(plan: Plan, store: Store, opener: Opener, watcher: Watcher, *, simulate: bool, judge: bool) -> None:
    """All that is missing: in this process, or in a cluster where the config names one."""
    if plan.config.ray is None:
        await stages(plan, store, opener, watcher, simulate=simulate, judge=judge)
    else:
        await spread(plan, store, on_ray, watcher, simulate=simulate, judge=judge)


async def _preflight(plan: Plan, opener: Opener, *, judge: bool) -> None:
    """Find every model before anything is written; servers are asked only for a run that is yet to begin."""
    must_go_on(plan.out)
    manifest.check(plan, judge=judge)
    if manifest.read(plan.out) is not None:
        return
    _must_hold_no_store(plan.out)
    if plan.config.ray is None:
        # Raises where these models cannot work on this machine.
        Host(opener, needs_of(plan, simulate=True, judge=judge))
    await ask_servers((*plan.speakers, *(seat.player for seat in plan.judges if judge)), opener)
    await check_chatbot(plan)


async def ask_servers(players: Iterable[Player], opener: Opener) -> None:
    """UserError where one of the servers that these models are on cannot be had, or is unlike others of its list."""
    async with Host(opener, {}) as host:
        await host.ready([player for player in players if player.servers], every=True)


def must_go_on(folder: Path) -> None:
    """UserError where a run was begun in `folder` and cannot go on: its texts were purged, or its store is lost."""
    manifest.must_hold_texts(folder)
    # The transcripts are written when the first stage ends; before, a run may have been stopped with nothing yet.
    if manifest.read(folder) is not None:
        _must_be_whole(folder, begun=(folder / "conversations.jsonl").exists())


def must_hold_run(folder: Path) -> dict[str, Any]:
    """The manifest of the run in `folder`; UserError where there is none, or where its store is lost."""
    begun = manifest.read(folder)
    if begun is None:
        _must_hold_no_store(folder)
        raise UserError(f"{folder} holds no run; make one with `vera-local run` or `vera-local simulate`")
    if POOLED in begun["identity"]:
        raise UserError(f"{folder} is a pool of runs, which compare can read; name one of its runs, or pool them again")
    _must_be_whole(folder, begun=True)
    return begun


def bundle_of_run(folder: Path) -> Bundle:
    """The bundle that the run in `folder` was made with: the one at the path that it names, or else the one that it
    keeps; UserError where there is no run or neither bundle."""
    begun = must_hold_run(folder)
    config = load_config(None, {}, begun["config"])
    place = kept(folder, begun["identity"]["bundle"]["name"])
    named = config.bundle not in known_bundles() and is_place(config.bundle)
    if place is None or named:
        return load_bundle(config.bundle, config.target, config.end_semantics)
    return load_bundle(place, None, config.end_semantics)


def _must_be_whole(folder: Path, *, begun: bool) -> None:
    """UserError where a run that has `begun` lost its store: a new one would pass for it, and its results be lost."""
    store = folder / STORE
    if begun and not (store.is_file() and store.stat().st_size):
        raise UserError(f"{store} is missing or empty, and with it the run; restore it or name another folder")


def _must_hold_no_store(folder: Path) -> None:
    """UserError where a run in `folder` lost its manifest."""
    if (folder / STORE).exists():
        raise manifest.missing(folder)


def score_run(folder: Path, bundle: Bundle, by: Mapping[str, Grouping] | None = None) -> Outcome:
    """Score what a run folder holds, `by` further persona columns, too, and write its results again.

    UserError where it holds no run.
    """
    manifest.check_bundle(folder, must_hold_run(folder), bundle)
    with locked(folder), Store.open(folder) as store:
        return publish(folder, bundle, store, by)
