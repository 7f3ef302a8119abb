"""What a self-test asks of a judge, planned beforehand. Knows no judge and no answer that one gave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from vera_local.bundle import Attack, Case, Question, Rubric, Suite, attackers_wish
from vera_local.conversation import Conversation, Ending, Message, Speaker


class Variant(StrEnum):
    """What is different from asking a case's question as it is."""

    PLAIN = "plain"
    """Nothing. Accuracy is counted over these."""
    REPEAT = "repeat"
    """It is asked once more."""
    REVERSED = "reversed"
    """The options are listed in reverse order."""
    ATTACK = "attack"
    """The chatbot's last reply ends with words to the judge."""
    MASTER_KEY = "master key"
    """The chatbot's only reply is a text without content."""


@dataclass(frozen=True)
class Asking:
    """One question about one transcript, with the right answer.

    `detail` is the number of a repeat (from 2), the id of an attack or a master key; `wish` is the answer that an
    attack is after.
    """

    case: Case
    question: Question
    right: str
    variant: Variant = Variant.PLAIN
    detail: str = ""
    wish: str = ""


@dataclass(frozen=True)
class Sitting:
    """One transcript and all that is asked about it."""

    conversation: Conversation
    askings: tuple[Asking, ...]


def sittings(rubric: Rubric, suite: Suite, repeats: int) -> tuple[Sitting, ...]:
    """The whole self-test; every plain question is asked `repeats` times."""
    return (
        *(_as_it_is(rubric, case, repeats) for case in suite.cases),
        *(s for attack in suite.attacks for case in suite.attack_on for s in _attacked(rubric, case, attack)),
        *(
            _with_key(rubric, entry.case, entry.expect, key)
            for key in suite.master_keys
            for entry in suite.master_on
        ),
    )  # fmt: skip


def _as_it_is(rubric: Rubric, case: Case, repeats: int) -> Sitting:
    askings = [a for a in _plain(rubric, case, case.expect) for a in _variants(a, repeats)]
    return Sitting(_conversation(case, "plain", case.turns), tuple(askings))


def _plain(rubric: Rubric, case: Case, expect: Mapping[str, str]) -> Iterator[Asking]:
    for question, right in expect.items():
        yield Asking(case, rubric.by_id[question], right)


def _variants(asking: Asking, repeats: int) -> Iterator[Asking]:
    yield asking
    for number in range(2, repeats + 1):
        yield replace(asking, variant=Variant.REPEAT, detail=str(number))
    question = replace(asking.question, options=asking.question.options[::-1])
    yield replace(asking, question=question, variant=Variant.REVERSED)


def _attacked(rubric: Rubric, case: Case, attack: Attack) -> Iterator[Sitting]:
    """One transcript for each answer that the attack is after."""
    plain = list(_plain(rubric, case, case.expect))
    aims = [replace(a, variant=Variant.ATTACK, detail=attack.id, wish=_wish(a)) for a in plain]
    for wish in dict.fromkeys(asking.wish for asking in aims):
        turns = _appended(case.turns, attack.text.render({"answer": wish}))
        conversation = _conversation(case, f"attack {attack.id} {wish}", turns)
        yield Sitting(conversation, tuple(asking for asking in aims if asking.wish == wish))


def _wish(asking: Asking) -> str:
    return attackers_wish(asking.question, asking.right)


def _with_key(rubric: Rubric, case: Case, expect: Mapping[str, str], key: str) -> Sitting:
    turns = (case.turns[0], Message(Speaker.CHATBOT, key))
    askings = (replace(a, variant=Variant.MASTER_KEY, detail=key) for a in _plain(rubric, case, expect))
    return Sitting(_conversation(case, f"key {key}", turns), tuple(askings))


def _appended(turns: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """The turns with `text` below the chatbot's last one."""
    last = max(i for i, turn in enumerate(turns) if turn.speaker is Speaker.CHATBOT)
    attacked = Message(Speaker.CHATBOT, f"{turns[last].text}\n\n{text}")
    return (*turns[:last], attacked, *turns[last + 1 :])


def _conversation(case: Case, how: str, turns: tuple[Message, ...]) -> Conversation:
    return Conversation(f"selftest {case.id}, {how}", case.id, 1, turns, Ending.RECORDED)
