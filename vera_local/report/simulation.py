"""How well the personas were played, apart from what the chatbot did. Knows no rating of a chatbot and no model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from vera_local.conversation import Ending
from vera_local.report.files import write_file

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


def write_simulation(folder: Path, played: Sequence[Played]) -> None:
    """Write simulation.json, where anything was played; raises UserError as `write_file`."""
    if not played:
        return
    content = {
        "schema": SIMULATION_SCHEMA,
        "simulators": by_simulator(played),
        "conversations": [_conversation(p) for p in played],
    }
    write_file(folder / NAME, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode(errors="replace"))


def by_simulator(played: Iterable[Played]) -> dict[str, dict[str, Any]]:
    """Simulator -> its figures over all its conversations."""
    pools: dict[str, list[Played]] = {}
    for one in played:
        pools.setdefault(one.simulator, []).append(one)
    return {simulator: _figures(pool) for simulator, pool in pools.items()}


def simulation_lines(played: Iterable[Played]) -> list[str]:
    """For each simulator how often it had to be asked again and failed, what did not fit, and the judges' marks."""
    return [line for name, figures in by_simulator(played).items() for line in _lines(name, figures)]


def _conversation(played: Played) -> dict[str, Any]:
    return asdict(played) | {
        "rejected": [one._asdict() for one in played.rejected],
        "checks": {judge: mark._asdict() for judge, mark in played.checks.items()},
    }


def _figures(pool: Sequence[Played]) -> dict[str, Any]:
    rules = Counter(rule for one in pool for tried in one.rejected for rule in tried.rules)
    return {
        "conversations": len(pool),
        "endings": dict(Counter(one.ending.value if one.ending else "unfinished" for one in pool)),
        "messages": sum(one.messages for one in pool),
        "messages_asked_again": sum(len({tried.turn for tried in one.rejected}) for one in pool),
        "rejected_tries": sum(len(one.rejected) for one in pool),
        "rules": dict(rules.most_common()),
        "failed_conversations": sum(one.ending is Ending.SIMULATOR for one in pool),
        "early_ends": sum(one.early_ends for one in pool),
        "conversations_beyond_simulators_context": sum(one.kept_from_simulator > 0 for one in pool),
        "conversations_beyond_chatbots_context": sum(one.kept_from_chatbot > 0 for one in pool),
        "checks": _checks(pool),
    }


def _checks(pool: Sequence[Played]) -> dict[str, dict[str, Any]]:
    judges = dict.fromkeys(judge for one in pool for judge in one.checks)
    marks = {judge: [one.checks[judge] for one in pool if judge in one.checks] for judge in judges}
    return {
        judge: {
            "conversations": len(its),
            "realism": _mean([mark.realism for mark in its]),
            "role_keeping": _mean([mark.role_keeping for mark in its]),
            "without_a_mark": sum(None in (mark.realism, mark.role_keeping) for mark in its),
        }
        for judge, its in marks.items()
    }


def _mean(marks: Iterable[int | None]) -> float | None:
    given = [mark for mark in marks if mark is not None]
    return sum(given) / len(given) if given else None


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
