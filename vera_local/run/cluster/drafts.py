"""The records of the jobs that a worker was given: what it knows of them and has not handed in yet. Keeps no file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from vera_local.bundle import DimensionRating
from vera_local.conversation import JUDGEABLE, Conversation, Ending, Message, Speaker
from vera_local.judge import PersonaCheck, Verdict
from vera_local.report.usage import SessionRow, StageRow, UsageRow
from vera_local.run.cluster.wire import CHECK, TALK, Account, Done, Line, Task, Written
from vera_local.simulate import Rejected, Said


class Drafts:
    """`Records` of a worker. `changed` is called when there is something new to hand in."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._tasks: dict[str, dict[Line, Task]] = {}
        self._by_chatbot: set[str] = set()
        self._unrated: dict[tuple[str, Line], set[str]] = {}
        self._farewells: dict[str, Written] = {}
        self._written: list[Written] = []
        self._done: list[Done] = []
        self.used = Session()

    @property
    def simulated(self) -> Drafts:
        """Kept in the same place."""
        return self

    def give(self, task: Task) -> None:
        """A job to begin with."""
        conversation = task.conversation
        known = {judge: dict(verdicts) for judge, verdicts in task.known.items()}
        self._tasks.setdefault(conversation.id, {})[task.line] = replace(task, known=known)
        self._unrated[conversation.id, task.line] = set(task.known)
        if any(message.speaker is Speaker.CHATBOT for message in conversation.messages):
            self._by_chatbot.add(conversation.id)

    def hand_in(self) -> tuple[tuple[Written, ...], tuple[Done, ...]]:
        """All that is new, and the jobs that are finished with it; it is forgotten here."""
        written, done = tuple(self._written), tuple(self._done)
        self._written, self._done = [], []
        return written, done

    def conversation(self, id: str, /) -> Conversation:
        return next(iter(self._tasks[id].values())).conversation

    def begin_anew(self, conversations: Iterable[str], /) -> None:
        for id in conversations:
            self._set_messages(id, ())
            self._by_chatbot.discard(id)
            self._write(Written("begin_anew", ((id,),)))

    def add_message(self, conversation: str, turn: int, said: Said) -> None:
        if said.message.speaker is Speaker.CHATBOT:
            self._by_chatbot.add(conversation)
        # It can go on here, on another engine.
        self._set_messages(conversation, (*self.conversation(conversation).messages, said.message))
        written = Written("add_message", (conversation, turn, said))
        if said.leaves:
            # The store takes it for the end, which has not come while the chatbot's session is being closed.
            self._farewells[conversation] = written
        else:
            self._write(written)

    def end(self, conversation: str, ending: Ending, detail: str) -> None:
        if farewell := self._farewells.pop(conversation, None):
            self._write(farewell)
        self._write(Written("end", (conversation, ending, detail)))
        self._finish(Done(TALK, conversation, ending in JUDGEABLE and conversation in self._by_chatbot))

    def add_rejected(self, conversation: str, turn: int, rejected: Rejected) -> None:
        """A try at a turn (1-based) that could not stand."""
        self._write(Written("add_rejected", (conversation, turn, rejected)))

    def add_check(self, conversation: str, judge: str, check: PersonaCheck) -> None:
        """What a judge found of the persona's side of a conversation."""
        self._write(Written("add_check", (conversation, judge, check)))
        self._finish(Done(CHECK, conversation))

    def rated(self, judge: str) -> _Rated:
        return _Rated(self._tasks, judge)

    def verdicts(self, conversation: str, judge: str) -> Mapping[str, Verdict]:
        return dict(self._known(conversation, judge))

    def add_verdict(self, conversation: str, judge: str, place: int, verdict: Verdict) -> None:
        self._known(conversation, judge)[verdict.question] = verdict
        self._write(Written("add_verdict", (conversation, judge, place, verdict)))

    def set_ratings(self, conversation: str, judge: str, ratings: Sequence[DimensionRating]) -> None:
        self._write(Written("set_ratings", (conversation, judge, tuple(ratings))))
        line = next(line for line, task in self._tasks[conversation].items() if judge in task.known)
        unrated = self._unrated[conversation, line]
        unrated.remove(judge)
        if not unrated:
            self._finish(Done(line, conversation))

    def _known(self, conversation: str, judge: str) -> dict[str, Verdict]:
        """What is known of a walk, to be added to."""
        tasks = self._tasks[conversation].values()
        return cast(dict[str, Verdict], next(task.known[judge] for task in tasks if judge in task.known))

    def _set_messages(self, id: str, messages: tuple[Message, ...]) -> None:
        for line, task in self._tasks[id].items():
            self._tasks[id][line] = replace(task, conversation=replace(task.conversation, messages=messages))

    def _write(self, written: Written) -> None:
        self._written.append(written)
        self._changed()

    def _finish(self, done: Done) -> None:
        self._done.append(done)
        del self._unrated[done.conversation, done.line]
        tasks = self._tasks[done.conversation]
        del tasks[done.line]
        if not tasks:
            del self._tasks[done.conversation]
            self._by_chatbot.discard(done.conversation)
        self._changed()


@dataclass(frozen=True, slots=True)
class _Rated:
    """The conversations that a judge need not rate: all but those of jobs that name it."""

    tasks: Mapping[str, Mapping[Line, Task]]
    judge: str

    def __contains__(self, id: object) -> bool:
        return not any(self.judge in task.known for task in self.tasks[str(id)].values())


class Session:
    """The account of a worker's work, until it is handed in."""

    def __init__(self) -> None:
        self._account: Account | None = None

    def begin(self, started: str) -> int:
        """The driver gives it its number."""
        return 0

    def save(self, session: SessionRow, stages: Iterable[StageRow], rows: Iterable[UsageRow]) -> None:
        """How far it is."""
        self._account = Account(session, tuple(stages), tuple(rows))

    def hand_in(self) -> Account | None:
        """How far it is; None where nothing is new."""
        account, self._account = self._account, None
        return account
