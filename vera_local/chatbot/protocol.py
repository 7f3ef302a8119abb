"""The system under test, seen from outside. Knows no persona: it is told what the user wrote and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from vera_local.conversation import Message
from vera_local.engine.seam import Reply


class Chatbot(Protocol):
    """Answers the last message of a history that ends with the user's."""

    async def reply(self, history: Sequence[Message], seed: int) -> Reply:
        """The next chatbot message, as it came, and what it cost; raises an EngineError where there is none."""
        ...
