"""What a store knows of how the personas were played, conversation by conversation. Knows no rating."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from vera_local.conversation import Head, Speaker
from vera_local.report.simulation import Mark, Played, Try
from vera_local.run.simulated import Side, Simulated


def played(kept: Simulated, heads: Iterable[Head], simulator_of_repeat: Mapping[int, str]) -> Iterator[Played]:
    """In the run's order, read one by one; none where no simulator of the run played the personas."""
    if simulator_of_repeat:
        for head in heads:
            yield _one(kept, head, simulator_of_repeat[head.repeat])


def _one(kept: Simulated, head: Head, simulator: str) -> Played:
    sides = {side.speaker: side for side in kept.sides(head.id)}
    persona = sides.get(Speaker.PERSONA, Side(Speaker.PERSONA, 0, 0, 0))
    chatbot = sides.get(Speaker.CHATBOT, Side(Speaker.CHATBOT, 0, 0, 0))
    return Played(
        conversation=head.id,
        simulator=simulator,
        ending=head.ending,
        detail=kept.detail(head.id),
        messages=persona.messages,
        early_ends=persona.early,
        kept_from_simulator=persona.left_out,
        kept_from_chatbot=chatbot.left_out,
        rejected=tuple(Try(turn, r.attempt, tuple(r.rules), r.text) for turn, r in kept.rejected(head.id)),
        checks={judge: Mark(c.realism, c.role_keeping, c.detail) for judge, c in kept.checks(head.id)},
    )
