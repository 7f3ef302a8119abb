"""What was said in a run, for tests that look into it: an outcome holds no texts."""

from __future__ import annotations

from vera_local.conversation import Conversation
from vera_local.run import Outcome
from vera_local.run.store import Store


def held(outcome: Outcome) -> tuple[Conversation, ...]:
    """All conversations as the store has them now, in the run's order."""
    with Store.open(outcome.folder) as store:
        return tuple(store.conversations())
