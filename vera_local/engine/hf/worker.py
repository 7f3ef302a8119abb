"""The one thread in which a model computes, so that the event loop stays free. Knows no text."""

from __future__ import annotations

import threading
from collections import deque

from vera_local.engine.hf.batch import Batch
from vera_local.engine.hf.row import Row
from vera_local.engine.seam import EngineDied

CLOSE_SECONDS = 60.0
"""Time for the step that is being computed. A thread cannot be ended: one that hangs keeps its memory until the process
ends."""


class Worker:
    """Answers rows until it is closed, or until something happens that it does not understand."""

    def __init__(self, batch: Batch) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Row] = deque()
        self._held: set[Row] = set()
        self._ended: str | None = None
        # Only the thread holds the model, which is freed with it. A daemon, so that it holds up no one who leaves.
        self._thread = threading.Thread(target=self._work, args=(batch,), name="transformers", daemon=True)
        self._thread.start()

    def submit(self, row: Row) -> None:
        """Have a row answered, by its future; EngineDied where that cannot be any more."""
        with self._changed:
            if self._ended is not None:
                raise EngineDied(self._ended)
            self._held.add(row)
            self._waiting.append(row)
            self._changed.notify()
        row.future.add_done_callback(lambda _: self._held.discard(row))

    def close(self) -> None:
        """End every row with EngineDied, and wait for the thread, unless it hangs."""
        self._end("the engine was closed")
        self._thread.join(CLOSE_SECONDS)

    def _work(self, batch: Batch) -> None:
        try:
            while self._ended is None:
                for row in self._next(batch):
                    batch.join(row)
                batch.step()
        except Exception as error:
            self._end(f"the model cannot go on ({type(error).__name__}: {str(error)[:200]})")

    def _next(self, batch: Batch) -> list[Row]:
        """The waiting rows that there is room for; waits for one where there is nothing to do."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or not batch.empty or self._ended is not None)
            rows = [self._waiting.popleft() for _ in range(min(batch.room, len(self._waiting)))]
        return [row for row in rows if row.wanted]

    def _end(self, reason: str) -> None:
        with self._changed:
            reason = self._ended or reason
            self._ended = reason
            held = list(self._held)
            self._changed.notify()
        for row in held:
            row.fail(EngineDied(reason))
