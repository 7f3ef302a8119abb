"""What a run cost on rented GPUs, beside what others published. Knows no engine and no store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PUBLISHED_USD, PUBLISHED_CONVERSATIONS = 220, 200

PUBLISHED = (
    f"The published figure for VERA-MH is about ${PUBLISHED_USD} for each provider that is evaluated: 100 personas, 2 "
    "conversations each, of 30 messages, with models behind APIs"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """`hours` of wall time on `gpus` GPUs at `price` for each GPU and hour, in whatever currency that is; paid for
    `conversations` that ended."""

    hours: float
    gpus: int
    price: float
    conversations: int

    @property
    def total(self) -> float:
        """All GPUs are paid for as long as the run lasts, whether they work or not."""
        return self.hours * self.gpus * self.price

    @property
    def each(self) -> float | None:
        """Of one conversation; None where none ended."""
        return self.total / self.conversations if self.conversations else None


def cost_lines(cost: Cost) -> list[str]:
    """The cost and what to compare it with."""
    return [
        f"Cost: {money(cost.total)} = {cost.hours:.3f} h of wall time x {cost.gpus} GPU(s) x {cost.price:g} per GPU "
        f"hour{_each(cost)}.",
        f"{PUBLISHED}. Other lengths and other models make other costs.",
    ]


def cost_json(cost: Cost) -> dict[str, Any]:
    """The same as numbers."""
    return {
        "total": cost.total,
        "per_conversation": cost.each,
        "wall_hours": cost.hours,
        "gpus": cost.gpus,
        "gpu_hour_price": cost.price,
        "published": {"usd": PUBLISHED_USD, "conversations": PUBLISHED_CONVERSATIONS, "what": PUBLISHED},
    }


def _each(cost: Cost) -> str:
    if cost.each is None:
        return "; no conversation ended"
    return (
        f"; {money(cost.each)} for each of {cost.conversations} conversations, so {PUBLISHED_CONVERSATIONS} like them "
        f"come to {money(PUBLISHED_CONVERSATIONS * cost.each)}"
    )


def money(amount: float) -> str:
    """Two decimals, or as many as show two digits."""
    return f"{amount:,.2f}" if amount >= 1 or amount == 0 else f"{amount:.2g}"
