"""A chatbot in Python. `make` is called once per conversation and gives what is called for each reply."""

from __future__ import annotations

from collections.abc import Callable

History = list[dict[str, str]]


def make() -> Callable[[str, History], str]:
    """A chatbot that keeps its own count; `async def` works as well, here and below."""
    heard = 0

    def reply(message: str, history: History) -> str:
        """`message` is the user's latest; `history` all so far, as {"role", "content"}, that one at its end."""
        nonlocal heard
        heard += 1
        return f"That was message {heard}, of {len(message.split())} words. How do you feel now?"

    return reply
