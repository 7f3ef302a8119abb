"""One request while it is being answered: what it has written, and whether it has ended. Knows no model."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vera_local.engine.hf.constraint import Constraint
from vera_local.engine.hf.draw import Dice
from vera_local.engine.seam import Finish, Reply, Request, Usage
from vera_local.engine.template import ChatTemplate

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Marks:
    """What ends an answer: the model's own `ends`, and the request's `stop`, as control token, as text, or neither."""

    ends: frozenset[int]
    stop_token: int | None = None
    stop_text: str = ""


@dataclass(eq=False)
class Row:
    """`ids` is the prompt with what the answer already begins with."""

    request: Request
    ids: tuple[int, ...]
    marks: Marks
    template: ChatTemplate
    future: Future[Reply] = field(default_factory=Future)
    constraint: Constraint | None = None
    reused: int = 0

    def __post_init__(self) -> None:
        self.tokens: list[int] = []
        self._labels: dict[int, float] = {}
        self._dice = Dice(self.request.sampling, self.ids)

    @property
    def wanted(self) -> bool:
        """Whether someone still waits for the answer."""
        return not self.future.done()

    @property
    def length(self) -> int:
        """Tokens of the prompt and of what was written."""
        return len(self.ids) + len(self.tokens)

    def take(self, logits: Tensor) -> bool:
        """Draw one token from the model's logits; True where the answer has ended with it."""
        if self.request.labels and not self.tokens:
            self._labels = _log_probabilities(logits, self.request.labels)
        token = self._dice.draw(logits, None if self.constraint is None else self.constraint.allowed)
        if token == self.marks.stop_token:
            return self._end(Finish.MARK, ended_by=1)
        if token in self.marks.ends:
            return self._end(Finish.STOP, ended_by=1)
        self.tokens.append(token)
        return self._ended_by_text() or self._ended_by_length() or self._ended_by_pattern(token)

    def fail(self, error: Exception) -> None:
        """End without an answer."""
        # Whoever asked may have left in this moment.
        with suppress(InvalidStateError):
            self.future.set_exception(error)

    def _ended_by_text(self) -> bool:
        stop = self.marks.stop_text
        if not stop or stop not in (text := self.template.written(self.tokens)):
            return False
        return self._end(Finish.MARK, text[: text.index(stop)])

    def _ended_by_length(self) -> bool:
        return len(self.tokens) == self.request.sampling.max_tokens and self._end(Finish.LENGTH)

    def _ended_by_pattern(self, token: int) -> bool:
        if self.constraint is None:
            return False
        self.constraint.advance(token)
        # The end is all that can come: the model need not be asked for it.
        finish = Finish.MARK if self.marks.stop_token in self.marks.ends else Finish.STOP
        return self.constraint.complete and self._end(finish, ended_by=1)

    def _end(self, finish: Finish, text: str | None = None, ended_by: int = 0) -> bool:
        usage = Usage(len(self.ids), self.reused, len(self.tokens) + ended_by)
        whole = self.template.written(self.tokens)
        if text is None:
            # Half a character is not written yet.
            reply = Reply(whole.rstrip("\ufffd"), finish, usage, self._labels, tuple(self.tokens))
        else:
            reply = Reply(text, finish, usage, self._labels, self.template.beginning(self.tokens, text))
        with suppress(InvalidStateError):
            self.future.set_result(reply)
        return True


def _log_probabilities(logits: Tensor, labels: Sequence[int]) -> dict[int, float]:
    every = logits.float().log_softmax(-1)
    return {label: float(every[label]) for label in labels}
