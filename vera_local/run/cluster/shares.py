"""What of the limits of chatbots and servers each of several workers may use. Knows no worker and no chatbot's kind."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from vera_local.chatbot import External, Manners
from vera_local.run.plan import Plan
from vera_local.run.players import Player


class Share(NamedTuple):
    """That of the worker in one of so many places."""

    workers: int
    place: int

    def of(self, whole: int) -> int:
        """At least 1; where there is enough, those of all places add up to the whole."""
        return max(1, (whole + self.place) // self.workers)


def most_workers(plan: Plan) -> int | None:
    """How many workers can share the plan's chatbot, since each needs a request of its own; None: any number."""
    return plan.chatbot.concurrency if isinstance(plan.chatbot, Manners) else None


def fewer_told(plan: Plan, wanted: int, size: int) -> str:
    """Why there are fewer workers than there could be, to stand behind another sentence; empty where there are not."""
    if size == wanted or not isinstance(plan.chatbot, Manners):
        return ""
    name = plan.chatbot.title
    return f" Not {wanted:,}: each needs one of the {size:,} requests that {name} takes at once (concurrency)."


def share_of(plan: Plan, workers: int, number: int) -> Plan:
    """The plan as the worker of that number has it, of so many at work: all of them together use the limits of its
    chatbot and its servers and keep them, as far as each of them sends one request at least. The first has least."""
    share = Share(workers, number % workers)
    judges = tuple(replace(seat, player=_player(seat.player, share)) for seat in plan.judges)
    simulators = tuple(_player(player, share) for player in plan.simulators)
    return replace(plan, simulators=simulators, judges=judges, chatbot=_chatbot(plan.chatbot, share))


def _player(player: Player, share: Share) -> Player:
    return replace(player, servers=tuple(it._replace(requests=share.of(it.requests)) for it in player.servers))


def _chatbot(chatbot: Player | External, share: Share) -> Player | External:
    if not isinstance(chatbot, Manners):
        return chatbot
    rate = chatbot.requests_per_minute
    limits = {
        "concurrency": share.of(chatbot.concurrency),
        "requests_per_minute": None if rate is None else rate / share.workers,
    }
    return chatbot.model_copy(update=limits)
