"""What rows of a store are not as this program writes them. Knows no file, and mends nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from enum import StrEnum

from polars.exceptions import PolarsError

from vera_local.bundle import Rubric
from vera_local.conversation import Ending, Speaker
from vera_local.judge import Mode, State
from vera_local.run.schema import STEPS
from vera_local.run.unusable import UNREADABLE
from vera_local.simulate import Rule


def _is(kind: str, *columns: str) -> str:
    return " and ".join(f"typeof({column}) = '{kind}'" for column in columns)


def _one_of(column: str, words: type[StrEnum]) -> str:
    return f"{column} in ({', '.join(repr(word.value) for word in words)})"


def _json(column: str, outer: str, inner: str) -> str:
    """Whether the text is JSON of the `outer` type whose every value is of an `inner` one."""
    return (
        f"iif(json_valid({column}), json_type({column}) = '{outer}' and not exists"
        f" (select 1 from json_each({column}) where type not in ({inner})), false)"
    )


def _number(*columns: str) -> str:
    return " and ".join(f"typeof({column}) in ('integer', 'real')" for column in columns)


_TEXTS, _WHOLE, _NUMBERS = "'text'", "'integer'", "'integer', 'real'"
_TOKENS = ("prompt_tokens", "cached_tokens", "output_tokens")
_WORDS = f"not exists (select 1 from json_each(rules) where not {_one_of('value', Rule)})"
_READ = "answer is null or exists (select 1 from json_each(confidence) where key = answer)"

RULES = {
    "conversations": (
        f"{_is('text', 'id', 'persona', 'detail')} and {_is('integer', 'place', 'repeat')}"
        f" and (ending is null or {_one_of('ending', Ending)})"
    ),
    "messages": (
        f"{_is('text', 'conversation', 'text')} and {_is('integer', 'turn', 'cut', 'early', 'left_out', *_TOKENS)}"
        f" and {_one_of('speaker', Speaker)}"
    ),
    "rejected": (
        f"{_is('text', 'conversation', 'text')} and {_is('integer', 'turn', 'attempt', *_TOKENS)}"
        f" and {_json('rules', 'array', _TEXTS)} and {_WORDS}"
    ),
    "verdicts": (
        f"{_is('text', 'conversation', 'judge', 'question', 'text', 'detail', 'rationale', 'left_out')}"
        f" and {_is('integer', 'place', *_TOKENS)} and {_one_of('state', State)} and {_one_of('mode', Mode)}"
        f" and (answer is null) = (state != '{State.ANSWERED}') and (answer is null or {_is('text', 'answer')})"
        f" and (evidence is null or {_json('evidence', 'array', _WHOLE)})"
        f" and (confidence is null or {_json('confidence', 'object', _NUMBERS)} and ({_READ}))"
    ),
    "persona_checks": (
        f"{_is('text', 'conversation', 'judge', 'detail')} and {_is('integer', *_TOKENS)}"
        " and typeof(realism) in ('null', 'integer') and typeof(role_keeping) in ('null', 'integer')"
    ),
    "ratings": f"{_is('text', 'conversation', 'judge', 'dimension')} and {_json('decided_by', 'array', _TEXTS)}",
    "sessions": f"{_is('text', 'started')} and {_number('wall_s', 'busy_s')} and {_is('integer', 'restarts')}",
    "stages": f"{_is('text', 'stage')} and {_number('wall_s', 'busy_s')}",
    "usage": (
        f"{_is('text', 'stage', 'role', 'model')} and {_number('busy_s')}"
        f" and {_is('integer', 'requests', 'failed', 'aborted', 'distinct_tokens', *_TOKENS)}"
        f" and {_is('integer', *(f'kept_{column}' for column in _TOKENS))}"
    ),
}
"""Table -> what holds of each row; those that others refer to come before them."""


TRIPPED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, PolarsError)
"""What a reader of rows raises that are not as this program writes them."""


class Foreign(ValueError):
    """What a store holds is not of the rubric that its run names."""


def fault_behind(tripped: Exception, db: sqlite3.Connection) -> str:
    """What is wrong with the rows that somebody may have tripped over; empty where they are as they should be."""
    if isinstance(tripped, Foreign):
        return str(tripped)
    try:
        return next((f"table {table}, row {row}" for table, row in unsound(db)), "")
    except UNREADABLE as error:
        return str(error)


def unsound(db: sqlite3.Connection, rubric: Rubric | None = None) -> Iterator[tuple[str, int]]:
    """(table, row number) of the rows that are not as they are written, and of verdicts that are not of the rubric.

    None of a store of another version.
    """
    if db.execute("pragma user_version").fetchone()[0] != len(STEPS):
        return
    for table, rule in RULES.items():
        # Where a rule comes to null it does not hold.
        for (row,) in db.execute(f"select rowid from {table} where not coalesce({rule}, false)"):
            yield table, row
    if rubric is not None:
        for row, question, answer in db.execute("select rowid, question, answer from verdicts"):
            if not _is_asked(question, answer, rubric):
                yield "verdicts", row


def must_be_asked(question: str, answer: str | None, rubric: Rubric) -> None:
    """Foreign unless this rubric has the question, and the answer, where there is one, among its options."""
    if not _is_asked(question, answer, rubric):
        raise Foreign(f"a verdict on question {question!r} is not of the bundle's rubric")


def _is_asked(question: str, answer: str | None, rubric: Rubric) -> bool:
    found = rubric.by_id.get(question)
    return found is not None and (answer is None or any(option.answer == answer for option in found.options))


def must_be_rated(ratings: Iterable[tuple[str, str | None]], rubric: Rubric) -> None:
    """Foreign unless (dimension, rating) of one walk are those of this rubric, every dimension once."""
    words = {*rubric.ratings, rubric.not_relevant, None}
    found = list(ratings)
    if sorted(dimension for dimension, _ in found) != sorted(rubric.dimensions):
        raise Foreign("a conversation is not rated in each dimension of the bundle once")
    if strange := [rating for _, rating in found if rating not in words]:
        raise Foreign(f"the rating {strange[0]!r} is none of the bundle's")


def is_rated_by(db: sqlite3.Connection, rubric: Rubric) -> bool:
    """Whether every walk that has ended is rated as this rubric does."""
    walks: dict[tuple[str, str], list[tuple[str, str | None]]] = {}
    for conversation, judge, *rating in db.execute("select conversation, judge, dimension, rating from ratings"):
        walks.setdefault((conversation, judge), []).append((rating[0], rating[1]))
    try:
        for distinct in {tuple(walk) for walk in walks.values()}:
            must_be_rated(distinct, rubric)
    except Foreign:
        return False
    return True
