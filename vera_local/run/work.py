"""One run at work on engines that are open, which others may share. Opens no engine and knows no other run."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

from vera_local.chatbot import Chatbot
from vera_local.conversation import Head
from vera_local.engine.admission import Room
from vera_local.engine.seam import Engine
from vera_local.run.chatbots import opened_chatbot, place_of
from vera_local.run.checking import check_stage, unchecked
from vera_local.run.docket import Docket
from vera_local.run.host import Host, key_of
from vera_local.run.judging import Bench, judge_stage
from vera_local.run.ledger import Ledger
from vera_local.run.plan import Plan
from vera_local.run.progress import Watcher
from vera_local.run.records import Records
from vera_local.run.seats import Seat
from vera_local.run.simulating import Talk, simulate_stage
from vera_local.run.stage import admission_to, rooms_of
from vera_local.run.store import Store
from vera_local.run.wanted import Left, unrated


class Books(NamedTuple):
    """The records of a run at work."""

    store: Store
    ledger: Ledger


class Floor:
    """Engines that are open, and how much may be in flight on them for all runs together."""

    def __init__(self, host: Host, left: Sequence[Left]) -> None:
        self.host = host
        players = [player for part in left for player in part.players]
        engines: dict[Hashable, Sequence[Engine]] = {key_of(player): host.engines(player) for player in players}
        self._rooms = rooms_of(engines)
        self.admission = admission_to(engines, self._rooms)

    def bench(self, plan: Plan, seats: Sequence[Seat], records: Records, ledger: Ledger) -> Bench:
        """The judges of an engine on all that is open of it."""
        player = seats[0].player
        places = zip(self.host.engines(player), self.admission.rooms[key_of(player)], strict=True)
        return Bench.of(plan, seats, places, records, ledger)

    def welcome(self, plan: Plan, chatbot: Chatbot) -> None:
        """Let in so many conversations with a chatbot at once as it has places, whichever runs they are of."""
        if chatbot.places is not None:
            self._rooms.setdefault(place_of(plan), [Room(None, chatbot.places)])


@dataclass(frozen=True)
class Work:
    """A run on a floor. `all_in` is set when all jobs that come from it now were let in."""

    plan: Plan
    books: Books
    floor: Floor
    watcher: Watcher
    all_in: asyncio.Event

    async def do(self, left: Left) -> None:
        """Judge each conversation when it has ended, while others are still held; all judges work at the same time."""
        async with self._chatbot(left) as chatbot:
            benches = [self._bench(seats) for seats in left.groups]
            to_come = 0 if chatbot is None else len(self.books.store.unfinished())
            dockets = [Docket(unrated(self.books.store, bench.seats), to_come) for bench in benches]
            async with asyncio.TaskGroup() as group:
                begun = self._given_out(dockets) if chatbot is None else self._talk(chatbot, dockets)
                group.create_task(begun)
                for bench, docket in zip(benches, dockets, strict=True):
                    group.create_task(judge_stage(bench, docket, self.floor.admission, self.watcher))
        if left.check:
            await self._check_personas()

    async def _check_personas(self) -> None:
        """Let the first judge rate the personas that it has not rated yet."""
        waiting = Docket(unchecked(self.plan, self.books.store))
        engines, (store, ledger) = self.floor.host.engines(self.plan.judges[0].player), self.books
        await check_stage(self.plan, store, waiting, engines, self.floor.admission, ledger, self.watcher)

    def _chatbot(self, left: Left) -> AbstractAsyncContextManager[Chatbot | None]:
        return opened_chatbot(self.plan, self.floor.host.engine) if left.talks else nullcontext()

    async def _talk(self, chatbot: Chatbot, dockets: Sequence[Docket]) -> None:
        """Hold the conversations, and enter each into the dockets when it has ended."""
        self.floor.welcome(self.plan, chatbot)

        def arrived(head: Head) -> None:
            for docket in dockets:
                docket.enter(head)

        store, ledger = self.books
        talk = Talk(self.plan, store, self.floor.host, chatbot, ledger, arrived, self.all_in.set)
        await simulate_stage(talk, store, self.floor.admission, self.watcher)
        for docket in dockets:
            docket.close()

    async def _given_out(self, dockets: Sequence[Docket]) -> None:
        for docket in dockets:
            await docket.given_out.wait()
        self.all_in.set()

    def _bench(self, seats: Sequence[Seat]) -> Bench:
        """The judges of an engine; what a failure left of their work is taken back."""
        for seat in seats:
            self.books.store.forget_failed(seat.name)
        return self.floor.bench(self.plan, seats, *self.books)
