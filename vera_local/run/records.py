"""What the stages need of the records of a run, wherever they are kept. Keeps nothing itself."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Protocol

from vera_local.bundle import DimensionRating
from vera_local.conversation import Conversation, Ending
from vera_local.judge import PersonaCheck, Verdict
from vera_local.report.usage import SessionRow, StageRow, UsageRow
from vera_local.simulate import Rejected, Said


class Account(Protocol):
    """Where the work behind a run is entered."""

    def begin(self, started: str) -> int:
        """Enter a session; its number."""
        ...

    def save(self, session: SessionRow, stages: Iterable[StageRow], rows: Iterable[UsageRow]) -> None:
        """Enter how far a session is, in the place of what was known of it."""
        ...


class Simulated(Protocol):
    """What is kept of simulation beside the messages."""

    def add_rejected(self, conversation: str, turn: int, rejected: Rejected) -> None:
        """A try at a turn (1-based) that could not stand."""
        ...

    def add_check(self, conversation: str, judge: str, check: PersonaCheck) -> None:
        """What a judge found of the persona's side of a conversation."""
        ...


class Records(Protocol):
    """What is known of the conversations at work, and where goes what is new of them."""

    @property
    def simulated(self) -> Simulated:
        """What is kept of simulation beside the messages."""
        ...

    @property
    def used(self) -> Account:
        """The work behind it."""
        ...

    def conversation(self, id: str, /) -> Conversation:
        """A conversation with what was said so far."""
        ...

    def begin_anew(self, conversations: Iterable[str], /) -> None:
        """Drop all that was said in these, which have not ended."""
        ...

    def add_message(self, conversation: str, turn: int, said: Said) -> None:
        """A turn (1-based) that was said."""
        ...

    def end(self, conversation: str, ending: Ending, detail: str) -> None:
        """How a conversation ended, and why in words."""
        ...

    def rated(self, judge: str) -> Container[str]:
        """Conversations that this judge need not rate any more."""
        ...

    def verdicts(self, conversation: str, judge: str) -> Mapping[str, Verdict]:
        """Question id -> verdict of a walk that is not finished, in the order they were given."""
        ...

    def add_verdict(self, conversation: str, judge: str, place: int, verdict: Verdict) -> None:
        """A verdict and its place (1-based) in the judge's path."""
        ...

    def set_ratings(self, conversation: str, judge: str, ratings: Sequence[DimensionRating]) -> None:
        """The result of a finished walk."""
        ...
