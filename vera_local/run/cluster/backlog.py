"""The jobs of one line that wait in the driver: some in memory, all others in the store. Knows no engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from vera_local.run.pages import Place

KEPT = 10_000
"""Jobs in memory at most that came from workers; what is beyond stays in the store, and is found there later."""

PAGE = 500
"""Jobs read from the store at once."""

ReadPage = Callable[[int, int], Sequence[Place]]
"""(place, limit) -> what the store has behind that place."""


class Backlog:
    """Gives each job to one worker: first what came back from one that was lost, then what this worker's caches hold,
    then what the store has; what another's caches hold only to one that would do nothing else.

    `in_hand`: the jobs that workers have.
    """

    def __init__(self, page: ReadPage) -> None:
        self._page = page
        self._back: deque[str] = deque()
        self._own: dict[int, deque[str]] = {}
        self._read: deque[str] = deque()
        self._here: set[str] = set()
        self._after: int | None = -1
        self._missed = False
        self.in_hand: dict[str, int] = {}

    def enter(self, id: str, worker: int) -> None:
        """A new job, whose conversation is in this worker's caches; the store has it already."""
        if id in self._here or id in self.in_hand:
            return
        if len(self._here) >= KEPT:
            self._missed = True
            return
        self._here.add(id)
        self._own.setdefault(worker, deque()).append(id)

    def take(self, worker: int, *, idle: bool = True) -> str | None:
        """The next job for this worker, in whose hand it is from now on; None where there is none for it now. `idle`:
        whether it would do nothing without one."""
        id = self._next(worker, idle)
        if id is not None:
            self._here.discard(id)
            self.in_hand[id] = worker
        return id

    def finish(self, id: str) -> None:
        """It is in nobody's hand any more."""
        del self.in_hand[id]

    def lost(self, worker: int) -> int:
        """Take back what a worker had, and what its caches held; how many jobs are for others now."""
        mine = [id for id, its in self.in_hand.items() if its == worker]
        for id in mine:
            del self.in_hand[id]
        back = [*mine, *self._own.pop(worker, ())]
        self._back.extend(back)
        self._here.update(back)
        return len(back)

    @property
    def empty(self) -> bool:
        """Whether nothing waits, here or in the store."""
        return not self._here and not self._missed and not self._more()

    @property
    def done(self) -> bool:
        """Whether nothing waits and nobody works on anything."""
        return not self.in_hand and self.empty

    def _next(self, worker: int, idle: bool) -> str | None:
        if self._back:
            return self._back.popleft()
        if mine := self._own.get(worker):
            # The newest: what is older may have been pushed out of its caches.
            return mine.pop()
        if self._more():
            return self._read.popleft()
        theirs = max(self._own.values(), key=len, default=None) if idle else None
        return theirs.popleft() if theirs else None

    def _more(self) -> bool:
        """Read on in the store until there is a job in memory from it; whether there is one."""
        while not self._read:
            if self._after is None:
                if not self._missed:
                    return False
                self._after, self._missed = -1, False
            page = self._page(self._after, PAGE)
            # A page that is not full is the last; to find that out again would cost a look at every row behind it.
            self._after = page[-1].number if len(page) == PAGE else None
            fresh = [it.id for it in page if it.id not in self._here and it.id not in self.in_hand]
            self._read.extend(fresh)
            self._here.update(fresh)
        return True
