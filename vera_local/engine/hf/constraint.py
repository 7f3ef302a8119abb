"""What a pattern lets a model write next, token by token. Knows no model and no rubric."""

from __future__ import annotations

import re
from collections import OrderedDict
from functools import cache
from typing import TYPE_CHECKING, Any

from vera_local.engine.seam import InvalidRequest

if TYPE_CHECKING:
    from outlines_core import Guide, Index, Vocabulary

KEPT = 128
"""Compiled patterns that are kept. A rubric has about as many; one takes up to seconds to compile."""


class Constraint:
    """Where one answer stands in its pattern. `ends` are the tokens that may end it, wherever it may end."""

    def __init__(self, guide: Guide, ends: tuple[int, ...]) -> None:
        self._guide = guide
        self._ends = ends

    @property
    def allowed(self) -> list[int]:
        """The tokens that may come next."""
        tokens: list[int] = self._guide.get_tokens()
        return [*tokens, *self._ends[1:]] if self._ends[0] in tokens else tokens

    @property
    def complete(self) -> bool:
        """Whether nothing but the end may come."""
        tokens: list[int] = self._guide.get_tokens()
        return tokens == [self._ends[0]]

    def advance(self, token: int) -> None:
        """Write a token, which must be an allowed one and not an end."""
        self._guide.advance(token, return_tokens=False)


class Constraints:
    """Compiles patterns for one tokenizer. `ends`: the tokens that end the model's answers, at least one."""

    def __init__(self, tokenizer: Any, ends: tuple[int, ...]) -> None:
        self._tokenizer = tokenizer
        self._ends = ends
        self._vocabulary: Vocabulary | None = None
        self._compiled: OrderedDict[str, Index] = OrderedDict()

    def begin(self, pattern: str) -> Constraint:
        """The constraint of an answer not yet begun; InvalidRequest where the tokenizer cannot write the pattern."""
        from outlines_core import Guide

        return Constraint(Guide(self._index(pattern)), self._ends)

    def _index(self, pattern: str) -> Index:
        from outlines_core import Index, Vocabulary

        if self._vocabulary is None:
            self._vocabulary = Vocabulary(self._ends[0], token_bytes(self._tokenizer, self._ends))
        if pattern not in self._compiled:
            try:
                self._compiled[pattern] = Index(pattern, self._vocabulary)
            except ValueError as error:
                raise InvalidRequest(f"the pattern {pattern[:200]!r} cannot be used ({error})") from error
            while len(self._compiled) > KEPT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(pattern)
        return self._compiled[pattern]


def token_bytes(tokenizer: Any, ends: tuple[int, ...]) -> dict[bytes, list[int]]:
    """What each token writes, in bytes: many characters are several tokens. Control tokens write nothing."""
    control = {*ends, *tokenizer.all_special_ids}
    control |= {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    vocabulary: dict[bytes, list[int]] = {}
    for token, number in tokenizer.get_vocab().items():
        if number not in control and (written := _written(tokenizer, token)):
            vocabulary.setdefault(written, []).append(number)
    return vocabulary


def _written(tokenizer: Any, token: str) -> bytes:
    text: str = tokenizer.convert_tokens_to_string([token])
    if "\ufffd" in text and "\ufffd" not in token:
        return _part_of_a_character(token)
    # Decoders of the SentencePiece kind drop the space that a text begins with, which a token's own is not.
    return f" {text}".encode() if token.startswith("\u2581") and not text.startswith(" ") else text.encode()


def _part_of_a_character(token: str) -> bytes:
    """A token that is no whole character is written as <0xC3>, or with one letter for each byte."""
    if re.fullmatch(r"<0x[0-9A-F]{2}>", token):
        return bytes.fromhex(token[3:5])
    letters = _letters()
    return bytes(letters[letter] for letter in token) if all(letter in letters for letter in token) else b""


@cache
def _letters() -> dict[str, int]:
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return {letter: byte for byte, letter in bytes_to_unicode().items()}
