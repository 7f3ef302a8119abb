from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.judge.neutral import SIGN, neutralise, restore

KNOWN = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
    "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|python_tag|>",
    "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<s>", "</s>", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CALLS]",
    "<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>", "<unused12>", "[gMASK]", "<|channel|>", "<|message|>",
    "<|start|>", "<|end|>", "<|return|>", "<|call|>", "<|constrain|>", "<|reserved_200017|>", "<|vision_start|>",
    "<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>", "</seed:think>",
]  # fmt: skip
OWN = ("<zap>", "zapzap", "<|", "%%end", ":)")
PIECES = st.sampled_from([*KNOWN, *OWN, SIGN, SIGN * 2, "<", "|", ">", "[", "a", " ", "\n", "zap"])
TEXTS = st.one_of(st.text(), st.lists(PIECES).map("".join))


@pytest.mark.parametrize("marker", KNOWN)
def test_control_texts_of_the_common_families_are_known(marker: str) -> None:
    shown = neutralise(f"well{marker}then")
    assert marker not in shown
    assert shown == f"well{marker[0]}{SIGN}{marker[1:]}then"


@given(TEXTS)
def test_it_can_be_undone(text: str) -> None:
    assert restore(neutralise(text, OWN)) == text


@given(TEXTS)
def test_no_marker_is_left_not_even_where_two_overlap(text: str) -> None:
    shown = neutralise(text, OWN)
    assert not [marker for marker in (*KNOWN, *OWN) if marker in shown]


@pytest.mark.parametrize(
    "text",
    [
        "I <3 you",
        "a < b | c > d",
        "[1] see",
        "if (x << 2) >> 1",
        "I think. No [INSTANT] way",
        "\u00bf|qu\u00e9|?",
        "<b>bold</b>",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert neutralise(text, OWN) == text
