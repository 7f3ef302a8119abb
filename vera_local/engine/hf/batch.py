"""The rows that are being written now, each at its own place. Knows no thread and no event loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vera_local.engine.hf.constraint import Constraints
from vera_local.engine.hf.network import Network, joined, selected
from vera_local.engine.hf.row import Row
from vera_local.engine.seam import EngineError

if TYPE_CHECKING:
    from transformers import DynamicCache


class Batch:
    """Rows join and leave at any step. Each draws from its own seed, so neighbours do not change an answer."""

    def __init__(self, network: Network, constraints: Constraints) -> None:
        self._network = network
        self._constraints = constraints
        self._rows: list[Row] = []
        self._cache: DynamicCache | None = None

    @property
    def room(self) -> int:
        """How many more rows can join."""
        return self._network.rows - len(self._rows)

    @property
    def empty(self) -> bool:
        """Whether nothing is being written."""
        return not self._rows

    def join(self, row: Row) -> None:
        """Read the row's prompt and draw its first token. An EngineError ends this row alone."""
        with self._failing([row]):
            if row.request.pattern is not None:
                row.constraint = self._constraints.begin(row.request.pattern)
            prompted = self._network.read(row.ids, lambda: row.wanted)
            if prompted is None:
                return
            row.reused = prompted.reused
            if row.take(prompted.logits):
                return
            self._cache = prompted.cache if self._cache is None else joined(self._cache, prompted.cache)
            self._rows.append(row)

    def step(self) -> None:
        """Write one token in each row, and let those go that ended or that nobody waits for any more."""
        self._keep([place for place, row in enumerate(self._rows) if row.wanted])
        if self._cache is None:
            return
        rows = self._rows
        with self._failing(rows):
            lengths = [row.length for row in rows]
            logits = self._network.write([row.tokens[-1] for row in rows], self._cache, lengths)
            ended = [row.take(one) for row, one in zip(rows, logits, strict=True)]
            self._keep([place for place, end in enumerate(ended) if not end])

    def _keep(self, places: Sequence[int]) -> None:
        if len(places) == len(self._rows):
            return
        self._rows = [self._rows[place] for place in places]
        if self._cache is None or not places:
            self._cache = None
            return
        # The last token of a row is not in the cache yet.
        self._cache = selected(self._cache, places, max(row.length for row in self._rows) - 1)

    @contextmanager
    def _failing(self, rows: list[Row]) -> Iterator[None]:
        """Give an error that the engine survives to the rows it concerns."""
        import torch

        try:
            yield
        except EngineError as error:
            failure: EngineError = error
        except torch.OutOfMemoryError:
            self._network.forget()
            failure = EngineError("the device has not enough memory for this prompt beside the others")
        else:
            return
        for row in rows:
            row.fail(failure)
        self._keep([place for place, row in enumerate(self._rows) if row.wanted])
