"""What the commands print. Knows no engine and computes nothing."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from typing import Any, TextIO

from rich.console import Console

from vera_local.bundle import Bundle
from vera_local.report import by_group, interval_table, matrix, summary_lines
from vera_local.run import Outcome, Plan, Player

DEMONSTRATION = (
    "A role was played by the embedded 135M-parameter model. It shows the machinery at work; "
    "its ratings say nothing clinical about any chatbot."
)

LIMITS = (
    "This is a research tool, not a certificate and not a medical device. "
    "Its own rubric and personas are not clinically validated."
)


def progress_console() -> Console:
    """For progress and notes: a copy of standard error, which stays ours while an engine's processes write to a log."""
    stream: TextIO = os.fdopen(os.dup(sys.stderr.fileno()), "w", buffering=1)
    return Console(file=stream)


def announce(plan: Plan, console: Console, *, judge: bool) -> None:
    """What is about to run."""
    rows = {
        "bundle": f"{plan.bundle.title} {plan.bundle.version}",
        "personas": f"{len(plan.personas)} of {_available(plan)}, {plan.config.repeats} conversation(s) each",
        "turns": f"{plan.turns} messages, both sides together" + _bumped(plan),
        **({} if plan.simulator is None else {"simulator": _player(plan.simulator)}),
        "chatbot": f"{_player(plan.chatbot)}, {_system_prompt(plan)}",
        **({"judge": _player(plan.judge)} if judge else {}),
        "seed": str(plan.config.seed),
        "folder": str(plan.out),
    }
    if any(player.embedded for player in (*plan.speakers, *((plan.judge,) if judge else ()))):
        console.print(DEMONSTRATION, highlight=False)
    for key, value in rows.items():
        console.print(f"{key:>10}  {value}", highlight=False, markup=False, soft_wrap=True)


def _system_prompt(plan: Plan) -> str:
    own = plan.config.chatbot.system_prompt
    if own is not None:
        return f"system prompt {own}"
    return "the bundle's system prompt" if plan.system_prompt else "no system prompt of ours"


def warn(bundle: Bundle, console: Console) -> None:
    """What is odd about the bundle, one line each."""
    for warning in bundle.warnings:
        console.print(f"Warning: {warning}", highlight=False, markup=False, soft_wrap=True)


def _available(plan: Plan) -> int:
    return len(plan.bundle.available(controls=plan.config.controls))


def _bumped(plan: Plan) -> str:
    asked = plan.config.turns
    return f" ({asked} asked for; the chatbot has the last word)" if asked is not None and asked != plan.turns else ""


def _player(player: Player) -> str:
    return f"{player.profile.title} at {player.url}" if player.url else player.profile.title


def show_outcome(outcome: Outcome, *, as_json: bool) -> None:
    """Tables on standard output, or one JSON object."""
    if as_json:
        print(json.dumps(_as_json(outcome)))
        return
    console = Console()
    for judge, scores in outcome.scores.items():
        console.print(f"\nRatings by {judge}", style="bold", highlight=False)
        console.print(matrix(scores))
        console.print()
        console.print(interval_table(scores))
        console.print(f"\nBy {outcome.bundle.group_column}", style="bold", highlight=False)
        console.print(by_group(scores))
    console.print()
    for line in summary(outcome):
        console.print(line, highlight=False, markup=False)


def _as_json(outcome: Outcome) -> dict[str, Any]:
    said, cut, empty = outcome.replies
    return {
        "folder": str(outcome.folder),
        "endings": Counter(c.ending.value if c.ending else "unfinished" for c in outcome.conversations),
        "chatbot_messages": {"all": said, "cut": cut, "empty": empty},
        "missing_verdicts": outcome.missing_verdicts,
        "reasons": outcome.reasons,
        "demonstration": outcome.demonstration,
        "judges": {judge: scores.model_dump(mode="json") for judge, scores in outcome.scores.items()},
    }


def _controls(outcome: Outcome) -> list[str]:
    """That controls took part, where they did: the ratings of all conversations are then no figure of the chatbot's."""
    controls = {p.name for p in outcome.bundle.personas if p.control}
    count = sum(c.persona in controls for c in outcome.conversations)
    where = f"the ratings by {outcome.bundle.group_column} show them apart"
    return [f"Controls: {count} of the conversations; {where}."] if count else []


def summary(outcome: Outcome) -> list[str]:
    """Plain sentences below the tables."""
    missing = [f"{n} verdicts {state}" for state, n in outcome.missing_verdicts.items()]
    open_ones = sum(c.ending is None for c in outcome.conversations)
    said, cut, empty = outcome.replies
    return [
        *summary_lines(outcome.conversations, outcome.scores),
        *([f"Unfinished: {open_ones} conversations; the command that made the run goes on."] if open_ones else []),
        f"Chatbot messages: {said}, cut at their token limit: {cut}, empty: {empty}",
        *([f"Without an answer: {', '.join(missing)}."] if missing else []),
        *(f"Why ({place}): {reason}" for place, reason in outcome.reasons.items()),
        *_controls(outcome),
        f"Results: {outcome.folder} (scores.json, results.csv, results.parquet; transcripts in conversations.jsonl).",
        *([DEMONSTRATION] if outcome.demonstration else []),
        LIMITS,
    ]
