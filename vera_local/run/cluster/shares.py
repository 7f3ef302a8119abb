"""What of a chatbot's limits each of several workers may use. Knows no worker and no chatbot's kind."""

from __future__ import annotations

from dataclasses import replace

from vera_local.chatbot import Manners
from vera_local.run.plan import Plan


def most_workers(plan: Plan) -> int | None:
    """How many workers can share the plan's chatbot, since each needs a request of its own; None: any number."""
    return plan.chatbot.concurrency if isinstance(plan.chatbot, Manners) else None


def share_of(plan: Plan, workers: int) -> Plan:
    """The plan as each of so many workers has it: all of them together keep the limits of its chatbot."""
    chatbot = plan.chatbot
    if not isinstance(chatbot, Manners):
        return plan
    rate = chatbot.requests_per_minute
    limits = {
        "concurrency": max(1, chatbot.concurrency // workers),
        "requests_per_minute": None if rate is None else rate / workers,
    }
    return replace(plan, chatbot=chatbot.model_copy(update=limits))
