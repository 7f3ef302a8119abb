from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from vera_local.engine.grammar import pattern_of
from vera_local.engine.hf.constraint import Constraints, token_bytes
from vera_local.engine.seam import InvalidRequest

END, OTHER_END = 2, 0


@pytest.fixture(scope="module")
def tokenizer(tiny_model_folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(tiny_model_folder)


@pytest.mark.parametrize("text", ["Not Relevant", "  two\n\nlines", "Ärger 日本 🙂", "e\N{COMBINING ACUTE ACCENT}"])
def test_the_bytes_of_tokens_are_those_of_the_text(tokenizer: Any, text: str) -> None:
    written = {number: bytes_ for bytes_, numbers in token_bytes(tokenizer, (END,)).items() for number in numbers}
    assert b"".join(written[number] for number in tokenizer(text)["input_ids"]) == text.encode()


def test_control_tokens_write_nothing(tokenizer: Any) -> None:
    written = token_bytes(tokenizer, (END, OTHER_END))
    assert not {b"<|im_start|>", b"<|im_end|>", b"<|endoftext|>"} & written.keys()
    assert b"<think>" in written, "it is a plain token to this tokenizer"


def test_all_ends_may_come_where_one_may(tokenizer: Any) -> None:
    constraint = Constraints(tokenizer, (END, OTHER_END)).begin(pattern_of(["No", "Not Relevant"]))
    assert not {END, OTHER_END} & set(constraint.allowed)
    for token in tokenizer("No")["input_ids"]:
        constraint.advance(token)
    assert {END, OTHER_END} < set(constraint.allowed)
    assert not constraint.complete
    for token in tokenizer("t Relevant")["input_ids"]:
        constraint.advance(token)
    assert constraint.complete
    assert set(constraint.allowed) == {END, OTHER_END}


def test_each_answer_has_its_own_place_in_a_pattern(tokenizer: Any) -> None:
    constraints = Constraints(tokenizer, (END,))
    one, other = constraints.begin("ab$"), constraints.begin("ab$")
    (a, b) = tokenizer("a")["input_ids"] + tokenizer("b")["input_ids"]
    one.advance(a)
    assert b in one.allowed
    assert b not in other.allowed


def test_a_pattern_that_is_none_is_told(tokenizer: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"the pattern 'a\(b' cannot be used"):
        Constraints(tokenizer, (END,)).begin("a(b")
