"""How well the personas were played, apart from what the chatbot did. Knows no rating of a chatbot and no model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from vera_local.conversation import Ending
from vera_local.report.files import write_parts

SIMULATION_SCHEMA = 1
"""Version of the layout of simulation.json."""

NAME = "simulation.json"


SIMULATOR = "simulator"
"""What the ratings are grouped by where several simulators played."""


class Try(NamedTuple):
    """A message that could not stand: its turn and try (1-based), the rules that it broke, its text."""

    turn: int
    attempt: int
    rules: tuple[str, ...]
    text: str


class Mark(NamedTuple):
    """A judge's marks for a persona, 1 to 5, 5 best; None where it gave none."""

    realism: int | None
    role_keeping: int | None
    detail: str


@dataclass(frozen=True)
class Played:
    """The persona's side of one conversation.

    `messages` of the persona; `early_ends`: end signals taken out because they came too early; `kept_from_simulator`
    and `kept_from_chatbot`: the most earlier messages that did not fit its context; `checks`: by judge.
    """

    conversation: str
    simulator: str
    ending: Ending | None
    detail: str
    messages: int
    early_ends: int
    kept_from_simulator: int
    kept_from_chatbot: int
    rejected: tuple[Try, ...]
    checks: dict[str, Mark]


Figures = dict[str, dict[str, Any]]
"""Simulator -> its figures over all its conversations."""


def write_simulation(folder: Path, figures: Figures, played: Iterable[Played]) -> None:
    """Write simulation.json, where anything was played, holding one conversation at a time.

    `figures` are those of `played`, which stand before it in the file. Raises UserError as `write_file`.
    """
    if figures:
        write_parts(folder / NAME, (part.encode(errors="replace") for part in _content(figures, played)))


def _content(figures: Figures, played: Iterable[Played]) -> Iterator[str]:
    yield _json({"schema": SIMULATION_SCHEMA, "simulators": figures}).removesuffix("\n}")
    yield ',\n  "conversations": ['
    comma = ""
    for one in played:
        text = _json(_conversation(one)).replace("\n", "\n    ")
        yield f"{comma}\n    {text}"
        comma = ","
    yield "\n  ]\n}\n"


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False)


def by_simulator(played: Iterable[Played]) -> Figures:
    """The figures of each simulator, in the order of their first conversations; each conversation is taken once."""
    pools: dict[str, _Pool] = {}
    for one in played:
        pools.setdefault(one.simulator, _Pool()).add(one)
    return {simulator: pool.figures() for simulator, pool in pools.items()}


def simulation_lines(figures: Figures) -> list[str]:
    """For each simulator how often it had to be asked again and failed, what did not fit, and the judges' marks."""
    return [line for name, its in figures.items() for line in _lines(name, its)]


def _conversation(played: Played) -> dict[str, Any]:
    return asdict(played) | {
        "rejected": [one._asdict() for one in played.rejected],
        "checks": {judge: mark._asdict() for judge, mark in played.checks.items()},
    }


class _Pool:
    """What is counted over the conversations of one simulator, in the order in which the file names it."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._endings = Counter[str]()
        self._rules = Counter[str]()
        self._marks: dict[str, _Marks] = {}

    def add(self, one: Played) -> None:
        self._endings[one.ending.value if one.ending else "unfinished"] += 1
        self._rules.update(rule for tried in one.rejected for rule in tried.rules)
        self._counts.update(
            conversations=1,
            messages=one.messages,
            messages_asked_again=len({tried.turn for tried in one.rejected}),
            rejected_tries=len(one.rejected),
            failed_conversations=one.ending is Ending.SIMULATOR,
            early_ends=one.early_ends,
            conversations_beyond_simulators_context=one.kept_from_simulator > 0,
            conversations_beyond_chatbots_context=one.kept_from_chatbot > 0,
        )
        for judge, mark in one.checks.items():
            self._marks.setdefault(judge, _Marks()).add(mark)

    def figures(self) -> dict[str, Any]:
        n = self._counts
        return {
            "conversations": n["conversations"],
            "endings": dict(self._endings),
            "messages": n["messages"],
            "messages_asked_again": n["messages_asked_again"],
            "rejected_tries": n["rejected_tries"],
            "rules": dict(self._rules.most_common()),
            "failed_conversations": n["failed_conversations"],
            "early_ends": n["early_ends"],
            "conversations_beyond_simulators_context": n["conversations_beyond_simulators_context"],
            "conversations_beyond_chatbots_context": n["conversations_beyond_chatbots_context"],
            "checks": {judge: its.figures() for judge, its in self._marks.items()},
        }


class _Marks:
    """The marks of one judge for the personas of one simulator."""

    def __init__(self) -> None:
        self._conversations = self._without = 0
        self._realism = Counter[int]()
        self._role_keeping = Counter[int]()

    def add(self, mark: Mark) -> None:
        self._conversations += 1
        self._without += None in (mark.realism, mark.role_keeping)
        for counted, given in ((self._realism, mark.realism), (self._role_keeping, mark.role_keeping)):
            if given is not None:
                counted[given] += 1

    def figures(self) -> dict[str, Any]:
        return {
            "conversations": self._conversations,
            "realism": _mean(self._realism),
            "role_keeping": _mean(self._role_keeping),
            "without_a_mark": self._without,
        }


def _mean(marks: Counter[int]) -> float | None:
    return sum(mark * n for mark, n in marks.items()) / marks.total() if marks else None


def _lines(name: str, figures: dict[str, Any]) -> list[str]:
    rules = ", ".join(f"{rule}: {count}" for rule, count in figures["rules"].items())
    left = figures["conversations_beyond_simulators_context"], figures["conversations_beyond_chatbots_context"]
    return [
        f"Simulator {name}: messages: {figures['messages']}, asked for again: {figures['messages_asked_again']}"
        f"{f' ({rules})' if rules else ''}, end signals too early: {figures['early_ends']}, "
        f"conversations given up: {figures['failed_conversations']}",
        *([f"Oldest messages left out: for the simulator in {left[0]} conversations, for the chatbot in {left[1]}"]
          if any(left) else []),
        *(
            f"Personas of {name}, rated by {judge}: realism {_told(marks['realism'])}, "
            f"role-keeping {_told(marks['role_keeping'])}, of 5, in {marks['conversations']} conversations"
            for judge, marks in figures["checks"].items()
        ),
    ]  # fmt: skip


def _told(mean: float | None) -> str:
    return "no data" if mean is None else f"{mean:.1f}"
