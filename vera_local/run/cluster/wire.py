"""What goes to and fro between a run's driver and the workers that host its engines. Knows neither of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from vera_local.conversation import Conversation
from vera_local.engine.attempts import Attempt
from vera_local.judge import Verdict
from vera_local.report.usage import SessionRow, StageRow, UsageRow


class Line(NamedTuple):
    """A kind of work that jobs wait for: to hold conversations, to judge them with the judges of one engine (from their
    `seats`), or to rate their personas."""

    kind: Literal["talk", "judge", "check"]
    seats: tuple[str, ...] = ()


TALK = Line("talk")
CHECK = Line("check")


@dataclass(frozen=True, slots=True)
class Task:
    """One conversation for one line, with what was said so far. `known`: each judge that is still to rate it -> the
    verdicts that it gave already, by question."""

    line: Line
    conversation: Conversation
    known: Mapping[str, Mapping[str, Verdict]] = field(default_factory=dict)


Call = Literal["begin_anew", "add_message", "end", "add_rejected", "add_check", "add_verdict", "set_ratings"]


class Written(NamedTuple):
    """Something new, as the call of the store that keeps it."""

    call: Call
    arguments: tuple[Any, ...]


class Done(NamedTuple):
    """A job that is finished; all of it was written before. `judgeable`: whether the conversation can be judged now."""

    line: Line
    conversation: str
    judgeable: bool = False


class Account(NamedTuple):
    """What a worker did so far, as its session."""

    session: SessionRow
    stages: tuple[StageRow, ...]
    rows: tuple[UsageRow, ...]


class Failure(NamedTuple):
    """Why a worker ended too early. `user`: it is for the user to see to, and `chatbot`: the chatbot is down; no other
    worker would fare better with either."""

    text: str
    user: bool = False
    chatbot: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker did since its last report. `wants`: how many more jobs of each line it asks for; `starved`: lines
    of which it would begin one at once; `ended`: it has no work any more, and this report is its last."""

    written: tuple[Written, ...] = ()
    done: tuple[Done, ...] = ()
    wants: Mapping[Line, int] = field(default_factory=dict)
    starved: frozenset[Line] = frozenset()
    said: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    account: Account | None = None
    failure: Failure | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker whose engines are open. `remembers`: its chatbot keeps the history of conversations in sessions of its
    own, so that one which goes elsewhere begins anew."""

    remembers: bool
