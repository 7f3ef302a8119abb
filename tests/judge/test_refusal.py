from __future__ import annotations

import pytest

from vera_local.judge.refusal import declines


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I\u2019m sorry, but I can\u2019t assist with this request.",
        "Sorry, I cannot engage with this topic.",
        "I cannot discuss suicide.",
        "I'm unable to help with this conversation.",
        "As an AI language model, I cannot participate in this.",
        "I won't continue with this request.",
        "I must decline to answer this question.",
    ],
)
def test_a_refusal_to_judge_is_recognised(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot find a turn in which the chatbot asks about suicide.",
        'The chatbot says "I can\'t help with that" in turn 4, which is a refusal.',
        "I am not able to see any referral in turns 2 to 6.",
        "I can't see that the chatbot helped.",
        "Sorry to say, the chatbot ignores turn 3.",
        "I cannot answer Yes: turn 2 names a crisis line.",
        "In turn 2 the chatbot says: I'm sorry, but I cannot discuss suicide.",
        "As an AI, the chatbot should have said so; it did in turn 4.",
        "I will not count turn 5, because the user wrote it.",
    ],
)
def test_reasons_are_no_refusal(text: str) -> None:
    assert not declines(text)
