"""What the commands print. Knows no engine and computes nothing."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from typing import Any, TextIO

from rich.console import Console

from vera_local.bundle import Bundle
from vera_local.chatbot import OpenAISettings
from vera_local.cli.console import HarmlessConsole
from vera_local.conversation import Speaker
from vera_local.judge.jury import JURY, RULE
from vera_local.report import by_group, by_value, interval_table, matrix, summary_lines
from vera_local.report.judges import alike_lines, doubt_lines, jury_lines
from vera_local.report.record import DEMONSTRATION, LIMITS
from vera_local.report.simulation import SIMULATOR, simulation_lines
from vera_local.report.usage_terminal import restart_lines
from vera_local.run import Outcome, Plan, Player
from vera_local.run.cards import facts as card_facts
from vera_local.run.juries import facts
from vera_local.run.network import network_line
from vera_local.run.seats import Seat
from vera_local.selftest import headline


def progress_console() -> Console:
    """For progress and notes: a copy of standard error, which stays ours while an engine's processes write to a log."""
    stream: TextIO = os.fdopen(os.dup(sys.stderr.fileno()), "w", buffering=1)
    return HarmlessConsole(file=stream)


def announce(plan: Plan, console: Console, *, judge: bool) -> None:
    """What is about to run."""
    rows = {
        "bundle": f"{plan.bundle.title} {plan.bundle.version}",
        "personas": f"{len(plan.personas)} of {_available(plan)}, {plan.config.repeats} conversation(s) each"
        + _each(plan),
        "turns": f"{plan.turns} messages, both sides together" + _bumped(plan) + _limits(plan),
        **_simulators(plan),
        "chatbot": _chatbot(plan),
        **(_judges(plan) if judge else {}),
        "network": network_line(plan),
        "seed": str(plan.config.seed),
        "folder": str(plan.out),
    }
    if any(player.embedded for player in (*plan.speakers, *(seat.player for seat in plan.judges if judge))):
        console.print(DEMONSTRATION, highlight=False)
    for key, value in rows.items():
        console.print(f"{key:>10}  {value}", highlight=False, markup=False, soft_wrap=True)
    for note in judge_notes(plan) if judge else ():
        console.print(note, highlight=False, markup=False, soft_wrap=True)


def _simulators(plan: Plan) -> dict[str, str]:
    """One row for each simulator."""
    several = len(plan.simulators) > 1
    return {f"simulator{f' {n}' if several else ''}": _player(p) for n, p in enumerate(plan.simulators, 1)}


def _judges(plan: Plan) -> dict[str, str]:
    """One row for each judge, its repeats counted."""
    seats = {seat.judge: seat for seat in plan.judges}
    told = {name: _seat(seat, sum(s.judge == name for s in plan.judges)) for name, seat in seats.items()}
    several = len(told) > 1
    return {f"judge {n}" if several else "judge": words for n, words in enumerate(told.values(), 1)}


def _seat(seat: Seat, repeats: int) -> str:
    parts = [
        _player(seat.player),
        *([f"mode {seat.mode}, at most {seat.budget} tokens of reasoning"] if seat.budget else []),
        *([f"{repeats} times"] if repeats > 1 else []),
        *(["long transcripts cut"] if seat.window else []),
        *([] if seat.evidence else ["without evidence"]),
        *([] if seat.confidence else ["without confidence"]),
    ]
    return ", ".join(parts)


def judge_notes(plan: Plan) -> list[str]:
    """What to know of how the plan judges before it does."""
    greedy = sorted({s.judge for s in plan.judges if s.repeat > 1 and s.player.draw.temperature == 0})
    if not greedy:
        return []
    return [
        f"Note: {', '.join(greedy)} draws at temperature 0, so its repeats differ by the engine's rounding alone; "
        "set its temperature in a config to see how sure it is."
    ]


def _chatbot(plan: Plan) -> str:
    chatbot = plan.chatbot
    match chatbot:
        case Player():
            return f"{_player(chatbot)}, {_system_prompt(plan)}"
        case OpenAISettings():
            return f"{chatbot.title} at {chatbot.url}, {_system_prompt(plan)}"
    return f"{chatbot.title} ({chatbot.kind})"


def _system_prompt(plan: Plan) -> str:
    own = getattr(plan.config.chatbot, "system_prompt", None)
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


def _each(plan: Plan) -> str:
    return " by each simulator" if len(plan.simulators) > 1 else ""


def _limits(plan: Plan) -> str:
    """What else shapes a conversation, where it is not as usual."""
    words = plan.config.max_total_words
    return ("; the chatbot begins" if plan.first is Speaker.CHATBOT else "") + (f"; {words} words" if words else "")


def _player(player: Player) -> str:
    at = ", ".join(server.url for server in player.servers)
    return f"{player.profile.title} at {at}" if at else player.profile.title


def show_outcome(outcome: Outcome, *, as_json: bool) -> None:
    """Tables on standard output, or one JSON object."""
    if as_json:
        print(json.dumps(_as_json(outcome)))
        return
    console = HarmlessConsole()
    for judge in shown(outcome):
        scores = outcome.scores[judge]
        console.print(f"\nRatings by {judge}", style="bold", highlight=False)
        console.print(matrix(scores))
        console.print()
        console.print(interval_table(scores))
        console.print(f"\nBy {outcome.bundle.group_column}", style="bold", highlight=False)
        console.print(by_group(scores))
        if SIMULATOR in scores.by:
            console.print("\nBy simulator", style="bold", highlight=False)
            console.print(by_value(scores.by[SIMULATOR], scores.scale))
    console.print()
    for line in summary(outcome):
        console.print(line, highlight=False, markup=False)


def shown(outcome: Outcome) -> list[str]:
    """The judges whose tables are shown: repeats of one judge are joined, the jury comes last."""
    return [name for name in (*outcome.bench.judges, JURY) if name in outcome.scores]


def _as_json(outcome: Outcome) -> dict[str, Any]:
    said, cut, empty = outcome.replies
    return {
        "folder": str(outcome.folder),
        "endings": Counter(c.ending.value if c.ending else "unfinished" for c in outcome.conversations),
        "chatbot_messages": {"all": said, "cut": cut, "empty": empty},
        "simulators": outcome.simulators,
        "missing_verdicts": outcome.missing_verdicts,
        "reasons": outcome.reasons,
        "restarts": outcome.restarts,
        "demonstration": outcome.demonstration,
        "juries": facts(outcome.bench),
        "cards": {judge: card_facts(card) for judge, card in outcome.cards.items()},
        "uncertain": outcome.uncertain,
        "repeats_alike": {name: share._asdict() for name, share in outcome.repeats.items()},
        "ratings_alike": [{"judges": pair, **share._asdict()} for pair, share in outcome.agreement.items()],
        "judges": {judge: scores.model_dump(mode="json") for judge, scores in outcome.scores.items()},
    }


def _controls(outcome: Outcome) -> list[str]:
    """That controls took part, where they did: the ratings of all conversations are then no figure of the chatbot's."""
    controls = {p.name for p in outcome.bundle.personas if p.control}
    count = sum(c.persona in controls for c in outcome.conversations)
    where = f"the ratings by {outcome.bundle.group_column} show them apart"
    return [f"Controls: {count} of the conversations; {where}."] if count else []


def _together(outcome: Outcome) -> list[str]:
    """What the judges come to together, and how far they agree."""
    juries, judgeable = outcome.bench.juries, sum(c.judgeable for c in outcome.conversations)
    waiting = {name: judgeable - len(outcome.bench.ratings[name]) for name in juries}
    return [*jury_lines(juries, waiting, RULE), *alike_lines(outcome.repeats, outcome.agreement)]


def _self_tests(outcome: Outcome) -> list[str]:
    """What is known of each judge's worth."""
    told = {judge: headline(card) if card else _untested(judge, outcome) for judge, card in outcome.cards.items()}
    return [f"Self-test of {judge}: {words}." for judge, words in told.items()]


def _untested(judge: str, outcome: Outcome) -> str:
    """That a judge was not tried, with the command that tries it as it judged here."""
    mode = next((f" --judge-mode {mode}" for mode in ("reason", "think") if judge.endswith(f":{mode}")), "")
    command = f"vera-local selftest --judge MODEL{mode} --bundle {outcome.bundle.name}"
    return f"no self-test on record; `{command}` tells what its ratings are worth"


def summary(outcome: Outcome) -> list[str]:
    """Plain sentences below the tables."""
    missing = [f"{n} verdicts {state}" for state, n in outcome.missing_verdicts.items()]
    open_ones = sum(c.ending is None for c in outcome.conversations)
    said, cut, empty = outcome.replies
    return [
        *summary_lines(outcome.conversations, outcome.scores),
        *_self_tests(outcome),
        *_together(outcome),
        *([f"Unfinished: {open_ones} conversations; the command that made the run goes on."] if open_ones else []),
        *simulation_lines(outcome.simulators),
        f"Chatbot messages: {said}, cut at their token limit: {cut}, empty: {empty}",
        *([f"Without an answer: {', '.join(missing)}."] if missing else []),
        *(f"Why ({place}): {reason}" for place, reason in outcome.reasons.items()),
        *doubt_lines(outcome.uncertain, outcome.folder),
        *_controls(outcome),
        *restart_lines(outcome.restarts),
        f"Results: {outcome.folder} (scores.json, results and verdicts as .csv and .parquet; "
        "transcripts in conversations.jsonl).",
        *([DEMONSTRATION] if outcome.demonstration else []),
        LIMITS,
    ]
