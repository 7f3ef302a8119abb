"""What a conversation is expected to keep in each engine, before it begins, while it grows, and at its end."""

from __future__ import annotations

from typing import Any

from vera_local.conversation import Speaker
from vera_local.engine.seam import Usage
from vera_local.run.expected import PRIOR, Footprint, MessageLengths

PERSONA, CHATBOT = Speaker.PERSONA, Speaker.CHATBOT
LIMITS = {PERSONA: 100, CHATBOT: 300}


def footprint(**others: Any) -> Footprint:
    facts: dict[str, Any] = {
        "engines": {PERSONA: "p", CHATBOT: "c"},
        "before": 400,
        "said": 0,
        "left": 10,
        "lengths": MessageLengths.of(LIMITS),
        "whole": frozenset(Speaker),
        "contexts": {PERSONA: 8000, CHATBOT: 8000},
    }
    return Footprint(**facts | others)


def test_messages_are_half_as_long_as_they_may_be_until_some_were_seen() -> None:
    lengths = MessageLengths.of(LIMITS)
    assert (lengths.mean(PERSONA), lengths.mean(CHATBOT), lengths.said(10)) == (50, 150, 1000)
    for _ in range(PRIOR):
        lengths.saw(CHATBOT, 250)
    assert lengths.mean(CHATBOT) == 200
    lengths.saw(CHATBOT, 0)
    assert lengths.mean(CHATBOT) == 200, "a host that tells no tokens tells no length"


def test_each_engine_keeps_the_whole_conversation_and_the_first_one_what_stands_before() -> None:
    assert footprint().needs() == {"p": 1400, "c": 1000}
    assert footprint(said=600, left=4).needs() == {"p": 1400, "c": 1000}


def test_one_engine_for_both_sides_keeps_it_twice() -> None:
    assert footprint(engines={PERSONA: "m", CHATBOT: "m"}).needs() == {"m": 2400}


def test_a_side_that_is_none_of_ours_needs_nothing_and_its_words_count() -> None:
    assert footprint(engines={PERSONA: "p"}).needs() == {"p": 1400}


def test_a_simulator_with_notes_keeps_its_prompt_alone() -> None:
    assert footprint(whole=frozenset({CHATBOT})).needs() == {"p": 400, "c": 1000}


def test_what_is_kept_is_told_by_the_engine_once_it_was_asked() -> None:
    conversation = footprint()
    conversation.grew(PERSONA, Usage(prompt=380, output=50))
    conversation.grew(CHATBOT, Usage(prompt=90, output=150))
    # Both messages were as long as expected, and eight are to come.
    assert conversation.needs() == {"p": 430 + 800, "c": 240 + 800}


def test_at_its_end_it_keeps_what_it_holds() -> None:
    conversation = footprint(left=2)
    conversation.grew(PERSONA, Usage(prompt=1300, output=40))
    conversation.grew(CHATBOT, Usage(prompt=1000, output=160))
    assert conversation.needs() == {"p": 1340, "c": 1160}


def test_nothing_keeps_more_than_a_context() -> None:
    small = footprint(contexts={PERSONA: 1200, CHATBOT: 700})
    assert small.needs() == {"p": 1200, "c": 700}
