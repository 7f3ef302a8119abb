"""Chat messages -> token ids, by the model's own chat template. Knows no engine that will run them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from vera_local.engine.profile import Template
from vera_local.engine.seam import ChatMessage, InvalidRequest
from vera_local.errors import UserError


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
        self._switches: Mapping[str, bool] = {facts.thinking_switch: False} if facts.thinking_switch else {}

    @classmethod
    def load(cls, folder: Path, facts: Template) -> ChatTemplate:
        """Read the tokenizer from a model folder; UserError where there is none or it has no chat template."""
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        except Exception as error:
            # Readers of broken files raise whatever comes, a plain Exception among it, and tell it in many lines.
            reason = next(iter(str(error).splitlines()), "").rstrip(": ") or type(error).__name__
            raise UserError(
                f"{folder}: no tokenizer could be read ({reason}); fetch the complete model folder"
            ) from error
        if not getattr(tokenizer, "chat_template", None):
            raise UserError(f"{folder}: the tokenizer has no chat template; choose an instruction-tuned model")
        return cls(tokenizer, facts)

    def text(self, messages: Sequence[ChatMessage]) -> str:
        """The prompt as text, ending where the assistant's answer begins; InvalidRequest where the template refuses."""
        turns = tuple(messages) if self._facts.system_role else fold_system(messages)
        try:
            rendered = self._tokenizer.apply_chat_template(
                [{"role": m.role, "content": m.content} for m in turns],
                tokenize=False,
                add_generation_prompt=True,
                **self._switches,
            )
        except TemplateError as error:
            raise InvalidRequest(f"the model's chat template refuses the messages ({error})") from error
        return f"{rendered}{self._facts.answer_prefix}"

    def ids(self, messages: Sequence[ChatMessage]) -> list[int]:
        """The prompt as token ids. The template writes its own control tokens, so none is added here."""
        encoded = self._tokenizer(self.text(messages), add_special_tokens=False)
        return list(encoded["input_ids"])
