"""Chat messages -> token ids, by the model's own chat template. Knows no engine that will run them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from vera_local.engine.profile import Template
from vera_local.engine.seam import ChatMessage, InvalidRequest
from vera_local.errors import UserError

KEPT = 64
"""Prompts whose ids are kept: the requests of one question share theirs, and many questions are asked at once."""

ANCHORS = ("\n", "a", "")
"""Texts behind which an answer's text may be tokenised: the first that melts with no part of it is taken."""


def fold_system(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Put a leading system message in front of the first user message, for templates without that role."""
    if not messages or messages[0].role != "system":
        return tuple(messages)
    system, rest = messages[0], list(messages[1:])
    if rest and rest[0].role == "user":
        rest[0] = ChatMessage("user", f"{system.content}\n\n{rest[0].content}")
        return tuple(rest)
    return (ChatMessage("user", system.content), *rest)


class ChatTemplate:
    """The tokenizer and template of one model folder, with the facts its profile states about them."""

    def __init__(self, tokenizer: Any, facts: Template) -> None:
        self._tokenizer = tokenizer
        self._facts = facts
        self._read = lru_cache(maxsize=KEPT)(self._prompt)

    @classmethod
    def load(cls, folder: Path, facts: Template, *, code: bool = False) -> ChatTemplate:
        """Read the tokenizer from a model folder; UserError where there is none or it has no chat template.

        `code`: whether a tokenizer may be Python code of the folder.
        """
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=code)
        except Exception as error:
            # Readers of broken files raise whatever comes, a plain Exception among it, and tell it in many lines.
            reason = next(iter(str(error).splitlines()), "").rstrip(": ") or type(error).__name__
            raise UserError(
                f"{folder}: no tokenizer could be read ({reason}); fetch the complete model folder"
            ) from error
        if not getattr(tokenizer, "chat_template", None):
            raise UserError(f"{folder}: the tokenizer has no chat template; choose an instruction-tuned model")
        return cls(tokenizer, facts)

    @property
    def tokenizer(self) -> Any:
        """The tokenizer itself, for engines that constrain in this process what is written."""
        return self._tokenizer

    def text(self, messages: Sequence[ChatMessage], thinking: bool = False) -> str:
        """The prompt as text, ending where the assistant's answer begins, or its reasoning where it may think first.

        Raises InvalidRequest where the template refuses the messages.
        """
        turns = tuple(messages) if self._facts.system_role else fold_system(messages)
        try:
            rendered = self._tokenizer.apply_chat_template(
                [{"role": m.role, "content": m.content} for m in turns],
                tokenize=False,
                add_generation_prompt=True,
                **self._switch(thinking),
            )
        except TemplateError as error:
            raise InvalidRequest(f"the model's chat template refuses the messages ({error})") from error
        return rendered if thinking else f"{rendered}{self._facts.answer_prefix}"

    def ids(self, messages: Sequence[ChatMessage], thinking: bool = False) -> list[int]:
        """The prompt as token ids. The template writes its own control tokens, so none is added here."""
        return list(self._read(tuple(messages), thinking))

    def _prompt(self, messages: tuple[ChatMessage, ...], thinking: bool) -> tuple[int, ...]:
        return tuple(self._encode(self.text(messages, thinking)))

    def tokens(self, text: str) -> tuple[int, ...]:
        """The ids of `text` where it begins an answer or goes on with one; control tokens in it are read as such."""
        pieces = re.split(self._control_texts, text) if self._controls else [text]
        return tuple(token for piece in pieces if piece for token in self._piece(piece))

    def written(self, ids: Sequence[int]) -> str:
        """What a reader sees of ids that an answer holds: its text without control tokens."""
        before = self._encode(self._opening)
        return self._decode([*before, *ids], shown=True)[len(self._decode(before, shown=True)) :]

    def beginning(self, ids: Sequence[int], text: str) -> tuple[int, ...]:
        """The ids of `text`, with which what is written by `ids` begins; a token that goes beyond it is split."""
        kept = next(n for n in range(len(ids), -1, -1) if text.startswith(self.written(ids[:n])))
        return (*ids[:kept], *self.tokens(text[len(self.written(ids[:kept])) :]))

    @cached_property
    def markers(self) -> tuple[str, ...]:
        """Texts that the model reads as control tokens or role markers wherever they stand, the longest first."""
        source = str(self._tokenizer.chat_template)
        added = self._tokenizer.added_tokens_decoder.values()
        return longest_first([t.content for t in added if t.special or t.content in source], self._facts)

    def control(self, text: str) -> int | None:
        """The id of the one control token that `text` is; None where it is anything else."""
        return self._controls.get(text)

    def _piece(self, text: str) -> Sequence[int]:
        """The ids of a control token, or of a text without any.

        Tokenised alone it could get the blank that some tokenizers put in front of whatever they are given.
        """
        if (token := self.control(text)) is not None:
            return [token]
        for anchor in (self._opening, *ANCHORS):
            before, whole = self._encode(anchor), self._encode(anchor + text)
            if whole[: len(before)] == before and self._decode(whole) == self._decode(before) + text:
                return whole[len(before) :]
        return self._encode(text)

    @cached_property
    def _controls(self) -> dict[str, int]:
        # Some tokenizers add runs of blanks, too, which are nothing but text.
        added = self._tokenizer.added_tokens_decoder.items()
        return {token.content: i for i, token in added if token.content in self.markers}

    @cached_property
    def _control_texts(self) -> re.Pattern[str]:
        return re.compile(f"({'|'.join(map(re.escape, sorted(self._controls, key=len, reverse=True)))})")

    @cached_property
    def _opening(self) -> str:
        """A short prompt, up to where the answer begins."""
        return self.text([ChatMessage("user", "a")])

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _decode(self, ids: Sequence[int], *, shown: bool = False) -> str:
        """The text of ids; `shown` leaves out control tokens."""
        text: str = self._tokenizer.decode(ids, skip_special_tokens=shown, clean_up_tokenization_spaces=False)
        return text

    def _switch(self, thinking: bool) -> dict[str, bool]:
        return {self._facts.thinking_switch: thinking} if self._facts.thinking_switch else {}


def longest_first(found: Sequence[str], facts: Template) -> tuple[str, ...]:
    """The markers found in a tokenizer with those that the profile knows; no blanks, no single characters."""
    known = {*found, *facts.markers, *((facts.thinks.end,) if facts.thinks else ())}
    return tuple(sorted((m for m in known if len(m.strip()) > 1), key=lambda m: (-len(m), m)))
