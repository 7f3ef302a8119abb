"""What is wanted of a run, and what of it is still missing. Knows no engine and does nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from vera_local.conversation import Head
from vera_local.run.checking import unchecked
from vera_local.run.host import Key, key_of
from vera_local.run.plan import Plan
from vera_local.run.players import Player
from vera_local.run.seats import Seat
from vera_local.run.store import NAME as STORE
from vera_local.run.store import Store


class Wanted(NamedTuple):
    """A run, and whether its conversations are to be held and rated."""

    plan: Plan
    simulate: bool = True
    judge: bool = True


class Left(NamedTuple):
    """What a run is still to do: `talks`: hold conversations; `groups`: the seats that have something to rate, or will
    have, by their engine; `check`: let the first judge rate personas."""

    plan: Plan
    talks: bool
    groups: tuple[tuple[Seat, ...], ...]
    check: bool

    def __bool__(self) -> bool:
        return self.talks or bool(self.groups) or self.check

    @property
    def judges(self) -> tuple[Player, ...]:
        """The models that judge, one for each engine."""
        players = [seats[0].player for seats in self.groups]
        first = self.plan.judges[0].player
        if self.check and key_of(first) not in map(key_of, players):
            players.append(first)
        return tuple(players)

    @property
    def players(self) -> tuple[Player, ...]:
        """The models of ours that do it."""
        return (*(self.plan.speakers if self.talks else ()), *self.judges)

    def judged_on(self, engine: Key) -> Left:
        """The part of it that the judges on one engine have."""
        groups = tuple(seats for seats in self.groups if key_of(seats[0].player) == engine)
        return Left(self.plan, False, groups, self.check and key_of(self.plan.judges[0].player) == engine)


def left_of(wanted: Wanted, store: Store | None) -> Left:
    """What is still missing in the run's store; None: the run has not begun."""
    plan = wanted.plan
    talks = wanted.simulate and (store is None or bool(store.unfinished()))
    groups = [seats for seats in by_engine(plan.judges) if talks or _waits(store, seats)] if wanted.judge else []
    check = wanted.judge and plan.config.check_personas
    check = check and (talks or (store is not None and bool(unchecked(plan, store))))
    return Left(plan, talks, tuple(map(tuple, groups)), check)


def left_on_disk(wanted: Wanted) -> Left:
    """The same for a run that nobody in this process has open; UserError where its store cannot be read."""
    file = wanted.plan.out / STORE
    if not (file.is_file() and file.stat().st_size):
        return left_of(wanted, None)
    with Store.look(wanted.plan.out) as store:
        return left_of(wanted, store)


def unrated(store: Store, seats: Iterable[Seat]) -> tuple[Head, ...]:
    """What some of the seats have not rated."""
    return tuple({head.id: head for seat in seats for head in store.unrated(seat.name)}.values())


def by_engine(seats: Iterable[Seat]) -> list[list[Seat]]:
    """The seats of each engine, in the order given."""
    groups: dict[Key, list[Seat]] = {}
    for seat in seats:
        groups.setdefault(key_of(seat.player), []).append(seat)
    return list(groups.values())


def _waits(store: Store | None, seats: Iterable[Seat]) -> bool:
    return store is not None and any(store.unrated(seat.name) for seat in seats)
