"""What of the limits of chatbots and servers each of several workers may use. Knows no worker and no chatbot's kind."""

from __future__ import annotations

from dataclasses import replace

from vera_local.chatbot import External, Manners
from vera_local.run.plan import Plan
from vera_local.run.players import Player


def most_workers(plan: Plan) -> int | None:
    """How many workers can share the plan's chatbot, since each needs a request of its own; None: any number."""
    return plan.chatbot.concurrency if isinstance(plan.chatbot, Manners) else None


def fewer_told(plan: Plan, wanted: int, size: int) -> str:
    """Why there are fewer workers than there could be, to stand behind another sentence; empty where there are not."""
    if size == wanted or not isinstance(plan.chatbot, Manners):
        return ""
    name = plan.chatbot.title
    return f" Not {wanted:,}: each needs one of the {size:,} requests that {name} takes at once (concurrency)."


def share_of(plan: Plan, workers: int) -> Plan:
    """The plan as each of so many workers has it: all of them together keep the limits of its chatbot and its servers,
    as far as each of them sends one request at least."""
    judges = tuple(replace(seat, player=_player(seat.player, workers)) for seat in plan.judges)
    simulators = tuple(_player(player, workers) for player in plan.simulators)
    return replace(plan, simulators=simulators, judges=judges, chatbot=_chatbot(plan.chatbot, workers))


def _player(player: Player, workers: int) -> Player:
    return replace(player, servers=tuple(it._replace(requests=_part(it.requests, workers)) for it in player.servers))


def _chatbot(chatbot: Player | External, workers: int) -> Player | External:
    if not isinstance(chatbot, Manners):
        return chatbot
    rate = chatbot.requests_per_minute
    limits = {
        "concurrency": _part(chatbot.concurrency, workers),
        "requests_per_minute": None if rate is None else rate / workers,
    }
    return chatbot.model_copy(update=limits)


def _part(whole: int, workers: int) -> int:
    return max(1, whole // workers)
