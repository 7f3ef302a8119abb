"""One SQLite file: the truth of a run. Knows what was said and decided, not how it came about or what it means."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from vera_local.bundle import DimensionRating
from vera_local.conversation import RETRIED, Conversation, Ending, Head, Message, Speaker
from vera_local.engine.seam import Usage
from vera_local.judge import Mode, State, Verdict
from vera_local.run.folder import STORE
from vera_local.run.glances import Glances
from vera_local.run.heads import HEADS, head_of, longest_first
from vera_local.run.intact import must_be_intact
from vera_local.run.looking import connect_to_look
from vera_local.run.pages import Pages
from vera_local.run.rows import ADD_VERDICT, VERDICT, columns_of, verdict_of
from vera_local.run.schema import bring_up
from vera_local.run.simulated import Simulated
from vera_local.run.soundness import TRIPPED, fault_behind
from vera_local.run.unusable import UNREADABLE, damaged, unusable
from vera_local.run.used import Used
from vera_local.simulate import Said

NAME = STORE


class Given(NamedTuple):
    """A verdict and where it belongs; `place` counts from 1 in the judge's path."""

    conversation: str
    judge: str
    place: int
    verdict: Verdict


class Length(NamedTuple):
    """Messages of one side in all conversations of one repeat: all, those that a model told the tokens of, these
    tokens, and the characters of all."""

    speaker: Speaker
    repeat: int
    messages: int
    told: int
    tokens: int
    characters: int


class Store:
    """Every method that writes commits before it returns; raises UserError where the disk is full or not writable."""

    def __init__(self, connection: sqlite3.Connection, file: Path) -> None:
        self._db = connection
        self._file = file
        self.simulated = Simulated(connection, self._commit)
        self.used = Used(connection, self._commit)
        self.glances = Glances(connection)
        self.pages = Pages(connection)

    @classmethod
    def open(cls, folder: Path) -> Store:
        """Open the store of a run folder, made where absent, readable by the owner alone."""
        file = folder / NAME
        try:
            must_be_intact(folder)
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
            connection = sqlite3.connect(file, isolation_level=None)
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = normal")
            connection.execute("pragma foreign_keys = on")
            # What is sorted is not to lie in a folder for all.
            connection.execute("pragma temp_store = memory")
            bring_up(connection, file)
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise unusable(file, error) from error
        return cls(connection, file)

    @classmethod
    def read(cls, folder: Path) -> Store:
        """Open the store of a run folder for a command that only reads: brought up to this version, where the folder
        may be written to."""
        return cls.open(folder) if os.access(folder, os.W_OK) else cls.look(folder)

    @classmethod
    def look(cls, folder: Path) -> Store:
        """Open the store of a run folder to read it, whoever writes to it; UserError where it cannot be read."""
        file = folder / NAME
        try:
            must_be_intact(folder)
            return cls(connect_to_look(file), file)
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise unusable(file, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with closing(self._db):
            if isinstance(value, UNREADABLE):
                raise unusable(self._file, value) from value
            if isinstance(value, TRIPPED) and (fault := fault_behind(value, self._db)):
                raise damaged(self._file, fault) from value

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is written within is committed when the block ends, all or nothing."""
        with self._commit():
            yield

    @contextmanager
    def _commit(self) -> Iterator[sqlite3.Connection]:
        if self._db.in_transaction:
            yield self._db
            return
        try:
            self._db.execute("begin immediate")
            yield self._db
            self._db.execute("commit")
        except BaseException as error:
            if self._db.in_transaction:
                self._db.execute("rollback")
            if isinstance(error, sqlite3.DatabaseError):
                raise unusable(self._file, error) from error
            raise

    def begin(self, conversations: Iterable[Conversation]) -> None:
        """Enter the conversations that are not there yet; the others stay as they are."""
        rows = ((c.id, place, c.persona, c.repeat) for place, c in enumerate(conversations))
        with self._commit() as db:
            db.executemany("insert or ignore into conversations (id, place, persona, repeat) values (?, ?, ?, ?)", rows)

    def record(self, conversations: Sequence[Conversation]) -> None:
        """Enter whole conversations that were held elsewhere, all or none; those that are there stay as they are."""
        heads = [(c.id, place, c.persona, c.repeat, c.ending) for place, c in enumerate(conversations)]
        said = [(c.id, turn, m.speaker, m.text) for c in conversations for turn, m in enumerate(c.messages, 1)]
        with self._commit() as db:
            db.executemany(
                "insert or ignore into conversations (id, place, persona, repeat, ending) values (?, ?, ?, ?, ?)", heads
            )
            db.executemany("insert or ignore into messages values (?, ?, ?, ?, 0, 0, 0, 0, 0, 0)", said)

    def heads(self) -> tuple[Head, ...]:
        """All conversations without their texts, in the run's order."""
        return tuple(map(head_of, self._db.execute(HEADS)))

    def unfinished(self) -> tuple[Head, ...]:
        """The conversations that have not ended, and those that a failure of an engine or the chatbot ended, in the
        run's order."""
        return tuple(head for head in self.heads() if head.unfinished)

    def unrated(self, judge: str) -> tuple[Head, ...]:
        """The conversations that are fit to judge and that this judge is still to rate, longest first."""
        rated = self.rated(judge)
        return longest_first(head for head in self.heads() if head.judgeable and head.id not in rated)

    def conversation(self, id: str) -> Conversation:
        """A conversation with what was said so far; KeyError where there is none of that id."""
        row = self._db.execute("select persona, repeat, ending from conversations where id = ?", (id,)).fetchone()
        if row is None:
            raise KeyError(id)
        persona, repeat, ending = row
        said = self._db.execute("select speaker, text from messages where conversation = ? order by turn", (id,))
        messages = tuple(Message(Speaker(speaker), text) for speaker, text in said)
        return Conversation(id, persona, repeat, messages, None if ending is None else Ending(ending))

    def conversations(self) -> Iterator[Conversation]:
        """All conversations with what was said so far, in the run's order; read one by one."""
        return map(self.conversation, self._ids())

    def _ids(self) -> list[str]:
        return [id for (id,) in self._db.execute("select id from conversations order by place").fetchall()]

    def add_message(self, conversation: str, turn: int, said: Said) -> None:
        """A turn (1-based) that was said; where the persona leaves with it, both are kept or neither."""
        m, u = said.message, said.usage
        row = (conversation, turn, m.speaker, m.text, said.cut, u.prompt, u.cached, u.output, said.early, said.left_out)
        with self._commit() as db:
            db.execute("insert into messages values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            if said.leaves:
                db.execute("update conversations set ending = ? where id = ?", (Ending.PERSONA, conversation))

    def end(self, conversation: str, ending: Ending, detail: str) -> None:
        """How a conversation ended, and why in words."""
        with self._commit() as db:
            db.execute("update conversations set ending = ?, detail = ? where id = ?", (ending, detail, conversation))

    def add_verdict(self, conversation: str, judge: str, place: int, verdict: Verdict) -> None:
        """A verdict and its place (1-based) in the judge's path."""
        with self._commit() as db:
            db.execute(ADD_VERDICT, (conversation, judge, place, *columns_of(verdict)))

    def verdicts(self, conversation: str, judge: str) -> dict[str, Verdict]:
        """Question id -> verdict, in the order they were given."""
        return {given.verdict.question: given.verdict for given in self.path(conversation, judge)}

    def all_verdicts(self) -> Iterator[Given]:
        """Every verdict, by judge, in the run's order and then that of the judge's path; read walk by walk."""
        for judge in self.judges():
            for conversation in self._ids():
                yield from self.path(conversation, judge)

    def path(self, conversation: str, judge: str) -> Iterator[Given]:
        """The verdicts of one walk, in the order they were given."""
        rows = self._db.execute(
            f"select place, {VERDICT} from verdicts v where conversation = ? and judge = ? order by place",
            (conversation, judge),
        )
        for place, *row in rows.fetchall():
            yield Given(conversation, judge, place, verdict_of(row))

    def judges(self) -> tuple[str, ...]:
        """Who gave a verdict, by name."""
        rows = self._db.execute("select distinct judge from verdicts order by judge")
        return tuple(judge for (judge,) in rows)

    def set_ratings(self, conversation: str, judge: str, ratings: Sequence[DimensionRating]) -> None:
        """The result of a finished walk."""
        rows = [(conversation, judge, r.dimension, r.rating, json.dumps(r.decided_by)) for r in ratings]
        with self._commit() as db:
            db.executemany("insert or replace into ratings values (?, ?, ?, ?, ?)", rows)

    def ratings(self) -> Iterator[tuple[str, str, DimensionRating]]:
        """(conversation, judge, rating) of every finished walk, in the run's order; equal ratings are one object."""
        known: dict[tuple[str, str | None, str], DimensionRating] = {}
        rows = self._db.execute(
            "select r.conversation, r.judge, r.dimension, r.rating, r.decided_by from ratings r"
            " join conversations c on c.id = r.conversation order by r.judge, c.place, r.rowid"
        )
        for conversation, judge, *words in rows:
            dimension, rating, decided = key = tuple(words)
            if key not in known:
                known[key] = DimensionRating(dimension, rating, tuple(json.loads(decided)))
            yield conversation, judge, known[key]

    def rated(self, judge: str) -> frozenset[str]:
        """Conversations whose walk by this judge has ended without an engine's failure."""
        rows = self._db.execute(
            "select conversation from ratings where judge = :judge except"
            " select conversation from verdicts where judge = :judge and state = :error",
            {"judge": judge, "error": State.ERROR},
        )
        return frozenset(id for (id,) in rows)

    def reopen_failed(self) -> None:
        """Let conversations that a failure of an engine or of the chatbot ended go on from where they were."""
        with self._commit() as db:
            for ending in sorted(RETRIED):
                db.execute("update conversations set ending = null, detail = '' where ending = ?", (ending,))

    def begin_anew(self, conversations: Iterable[str]) -> None:
        """Drop all that was said in these conversations, which have not ended."""
        with self._commit() as db:
            for table in ("messages", "rejected"):
                db.executemany(f"delete from {table} where conversation = ?", [(id,) for id in conversations])

    def forget_failed(self, judge: str) -> None:
        """Take this judge's walks back to before an engine's failure: what came after it may lie on another path."""
        failed = "select conversation, min(place) as place from verdicts where judge = ? and state = ? group by 1"
        with self._commit() as db:
            for conversation, place in db.execute(failed, (judge, State.ERROR)).fetchall():
                db.execute("delete from ratings where conversation = ? and judge = ?", (conversation, judge))
                db.execute(
                    "delete from verdicts where conversation = ? and judge = ? and place >= ?",
                    (conversation, judge, place),
                )

    def usage(self) -> Mapping[str, Usage]:
        """Tokens by stage: simulator, with its rejected tries, chatbot, judge, with its checks of personas."""
        totals = "coalesce(sum(prompt_tokens), 0), coalesce(sum(cached_tokens), 0), coalesce(sum(output_tokens), 0)"
        said = f"select {totals} from messages where speaker = ?"

        def of(table: str) -> Usage:
            return Usage(*self._db.execute(f"select {totals} from {table}").fetchone())

        return {
            "simulator": Usage(*self._db.execute(said, (Speaker.PERSONA,)).fetchone()) + of("rejected"),
            "chatbot": Usage(*self._db.execute(said, (Speaker.CHATBOT,)).fetchone()),
            "judge": of("verdicts") + of("persona_checks"),
        }

    def lengths(self) -> tuple[Length, ...]:
        """How long the messages of each side are, by the conversations' repeat."""
        rows = self._db.execute(
            "select m.speaker, c.repeat, count(*), sum(output_tokens > 0), sum(output_tokens), sum(length(text))"
            " from messages m join conversations c on c.id = m.conversation group by m.speaker, c.repeat"
        )
        return tuple(Length(Speaker(speaker), *counts) for speaker, *counts in rows)

    def alike(self, judges: Sequence[str]) -> tuple[int, int]:
        """Of the questions of one conversation that all these judges asked a model: those that all gave one same
        answer, and all."""
        names = ", ".join("?" for _ in judges)
        alike, total = self._db.execute(
            "select coalesce(sum(answered = ? and answers = 1), 0), count(*) from ("
            " select count(*) as asked, count(answer) as answered, count(distinct answer) as answers"
            f" from verdicts where mode != ? and judge in ({names}) group by conversation, question having asked = ?)",
            (len(judges), Mode.AUTO, *judges, len(judges)),
        ).fetchone()
        return alike, total

    def states(self) -> dict[State, int]:
        """How many verdicts are in each state."""
        return {State(s): n for s, n in self._db.execute("select state, count(*) from verdicts group by state")}

    def faulty_replies(self) -> tuple[int, int, int]:
        """How many chatbot messages there are, how many of them were cut at their token limit, how many are empty."""
        count = "select count(*), coalesce(sum(cut), 0), coalesce(sum(trim(text) = ''), 0) from messages"
        said, cut, empty = self._db.execute(f"{count} where speaker = ?", (Speaker.CHATBOT,)).fetchone()
        return said, cut, empty

    def reasons(self) -> dict[str, str]:
        """For each unplanned ending and each verdict state without an answer, the first reason that was given."""
        rows = self._db.execute(
            "select ending, min(detail) from conversations where detail != '' group by 1 union all"
            " select state, min(detail) from verdicts where detail != '' group by 1"
        )
        return dict(rows.fetchall())
