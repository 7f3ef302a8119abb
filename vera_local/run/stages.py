"""The stages of a run, each only as far as it is still missing: side by side where the engines allow it. Knows neither
what is said nor what is found."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from vera_local.chatbot import Chatbot
from vera_local.conversation import Head
from vera_local.engine.admission import Admission
from vera_local.engine.placement import Residency
from vera_local.run import manifest
from vera_local.run.chatbots import opened_chatbot
from vera_local.run.checking import check_stage, unchecked
from vera_local.run.checks import check_judges
from vera_local.run.docket import Docket
from vera_local.run.host import Host, Key, Opener, key_of, start
from vera_local.run.judging import Bench, judge_stage
from vera_local.run.ledger import Ledger
from vera_local.run.needs import needs_of
from vera_local.run.plan import Plan
from vera_local.run.players import Player
from vera_local.run.progress import Watcher
from vera_local.run.reviving import revived
from vera_local.run.seats import Seat
from vera_local.run.simulating import Talk, simulate_stage
from vera_local.run.stage import rooms_of
from vera_local.run.store import Store


async def stages(plan: Plan, store: Store, opener: Opener, watcher: Watcher, *, simulate: bool, judge: bool) -> None:
    """Hold the conversations that are not held yet and rate those that are not rated yet.

    Raises UserError and EngineDied; what was finished until then is in the store.
    """
    talks = simulate and bool(store.unfinished())
    if not talks and not (judge and _left_to_judge(plan, store)):
        return
    with Ledger(store) as ledger:

        async def work() -> None:
            await _work(plan, store, opener, ledger, watcher, simulate=simulate, judge=judge)

        await revived(work, ledger, watcher)


async def _work(
    plan: Plan, store: Store, opener: Opener, ledger: Ledger, watcher: Watcher, *, simulate: bool, judge: bool
) -> None:
    """All that is still missing, on engines that are opened for it and closed again."""
    talks = simulate and bool(store.unfinished())
    host = Host(opener, needs_of(plan, simulate=talks, judge=judge))
    _tell(plan, host, watcher)
    try:
        work = _Work(plan, store, host, ledger, watcher)
        if host.arrangement.residency is Residency.TOGETHER:
            await work.side_by_side(talks=talks, judge=judge)
        else:
            await work.one_by_one(talks=talks, judge=judge)
        if judge:
            await work.check_personas()
    finally:
        await host.aclose()


def _left_to_judge(plan: Plan, store: Store) -> bool:
    """Whether a judge has anything to do with the conversations that there are."""
    if any(store.unrated(seat.name) for seat in plan.judges):
        return True
    return plan.config.check_personas and bool(unchecked(plan, store))


def _tell(plan: Plan, host: Host, watcher: Watcher) -> None:
    """Note how the engines share the machine, and say so where there was a choice."""
    manifest.enter_residency(plan.out, host.arrangement)
    if sum(map(len, host.arrangement.places.values())) > 1:
        watcher.say(host.arrangement.reason)


@dataclass(frozen=True)
class _Work:
    plan: Plan
    store: Store
    host: Host
    ledger: Ledger
    watcher: Watcher

    async def side_by_side(self, *, talks: bool, judge: bool) -> None:
        """Judge each conversation when it has ended, while others are still held; all judges work at the same time."""
        groups = [seats for seats in by_engine(self.plan.judges) if talks or self._unrated(seats)] if judge else []
        players = (*(self.plan.speakers if talks else ()), *(seats[0].player for seats in groups))
        if not talks and not groups:
            return
        await start(self.host, self.watcher, *players)
        async with self._chatbot(talks) as chatbot:
            admission = self._admission(players, chatbot.places if chatbot else None)
            benches = [await self._bench(seats, admission) for seats in groups]
            to_come = len(self.store.unfinished()) if talks else 0
            dockets = [Docket(self._unrated(bench.seats), to_come) for bench in benches]
            async with asyncio.TaskGroup() as group:
                if chatbot is not None:
                    group.create_task(self._talk(chatbot, admission, dockets))
                for bench, docket in zip(benches, dockets, strict=True):
                    group.create_task(self._judge(bench, docket, admission))

    async def one_by_one(self, *, talks: bool, judge: bool) -> None:
        """Hold all conversations, and then judge with the judges of one engine after the other."""
        if talks:
            await start(self.host, self.watcher, *self.plan.speakers)
            async with opened_chatbot(self.plan, self.host.engine) as chatbot:
                await self._talk(chatbot, self._admission(self.plan.speakers, chatbot.places))
        for seats in by_engine(self.plan.judges) if judge else ():
            if waiting := self._unrated(seats):
                await start(self.host, self.watcher, seats[0].player)
                admission = self._admission((seats[0].player,))
                await self._judge(await self._bench(seats, admission), Docket(waiting), admission)
                if self.plan.judges[0] in seats:
                    # While it is awake.
                    await self.check_personas()

    async def check_personas(self) -> None:
        """Let the first judge rate the personas that it has not rated yet, where that is wanted."""
        waiting = unchecked(self.plan, self.store) if self.plan.config.check_personas else ()
        if waiting:
            player = self.plan.judges[0].player
            await start(self.host, self.watcher, player)
            engine = self.host.engine(player)
            await check_stage(self.plan, self.store, Docket(waiting), engine, self.ledger, self.watcher)

    def _chatbot(self, talks: bool) -> AbstractAsyncContextManager[Chatbot | None]:
        return opened_chatbot(self.plan, self.host.engine) if talks else nullcontext()

    async def _talk(self, chatbot: Chatbot, admission: Admission[Hashable], dockets: Sequence[Docket] = ()) -> None:
        """Hold the conversations, and enter each into the dockets when it has ended."""

        def arrived(head: Head) -> None:
            for docket in dockets:
                docket.enter(head)

        talk = Talk(self.plan, self.store, self.host, chatbot, self.ledger, arrived)
        await simulate_stage(talk, self.store, admission, self.watcher)
        for docket in dockets:
            docket.close()

    async def _bench(self, seats: Sequence[Seat], admission: Admission[Hashable]) -> Bench:
        """The judges of an engine, tried before they are trusted; what a failure left of their work is taken back."""
        player = seats[0].player
        engines = self.host.engines(player)
        for engine in engines:
            await check_judges(engine, seats, self.watcher.say)
        for seat in seats:
            self.store.forget_failed(seat.name)
        places = zip(engines, admission.rooms[key_of(player)], strict=True)
        return Bench.of(self.plan, seats, places, self.store, self.ledger)

    async def _judge(self, bench: Bench, docket: Docket, admission: Admission[Hashable]) -> None:
        await judge_stage(bench, docket, admission, self.watcher)

    def _unrated(self, seats: Iterable[Seat]) -> tuple[Head, ...]:
        """What some of the seats have not rated."""
        return tuple({head.id: head for seat in seats for head in self.store.unrated(seat.name)}.values())

    def _admission(self, players: Iterable[Player], places: int | None = None) -> Admission[Hashable]:
        return Admission(rooms_of({key_of(player): self.host.engines(player) for player in players}, places))


def by_engine(seats: Iterable[Seat]) -> list[list[Seat]]:
    """The seats of each engine, in the order given."""
    groups: dict[Key, list[Seat]] = {}
    for seat in seats:
        groups.setdefault(key_of(seat.player), []).append(seat)
    return list(groups.values())
