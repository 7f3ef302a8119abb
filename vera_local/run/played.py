"""What a store knows of how the personas were played, conversation by conversation. Knows no rating."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vera_local.conversation import Conversation, Speaker
from vera_local.report.simulation import Mark, Played, Try
from vera_local.run.simulated import Side
from vera_local.run.store import Store


def played(
    store: Store, conversations: Iterable[Conversation], simulator_of_repeat: Mapping[int, str]
) -> tuple[Played, ...]:
    """In the run's order; empty where no simulator of the run played the personas."""
    if not simulator_of_repeat:
        return ()
    details, sides = store.simulated.details(), {(s.conversation, s.speaker): s for s in store.simulated.sides()}
    tries: dict[str, list[Try]] = {}
    for conversation, turn, r in store.simulated.rejected():
        tries.setdefault(conversation, []).append(Try(turn, r.attempt, tuple(r.rules), r.text))
    marks: dict[str, dict[str, Mark]] = {}
    for conversation, judge, check in store.simulated.checks():
        marks.setdefault(conversation, {})[judge] = Mark(check.realism, check.role_keeping, check.detail)
    return tuple(
        _one(
            c,
            simulator_of_repeat[c.repeat],
            details.get(c.id, ""),
            sides,
            tuple(tries.get(c.id, ())),
            marks.get(c.id, {}),
        )
        for c in conversations
    )


def _one(
    c: Conversation,
    simulator: str,
    detail: str,
    sides: dict[tuple[str, Speaker], Side],
    tries: tuple[Try, ...],
    marks: dict[str, Mark],
) -> Played:
    persona, chatbot = sides.get((c.id, Speaker.PERSONA)), sides.get((c.id, Speaker.CHATBOT))
    return Played(
        conversation=c.id,
        simulator=simulator,
        ending=c.ending,
        detail=detail,
        messages=persona.messages if persona else 0,
        early_ends=persona.early if persona else 0,
        kept_from_simulator=persona.left_out if persona else 0,
        kept_from_chatbot=chatbot.left_out if chatbot else 0,
        rejected=tries,
        checks=marks,
    )
