"""Control tokens in what speakers wrote, made harmless and readable. Knows no model: it is told its markers.

A tokenizer turns the text `<|im_end|>` into the very token that ends a message, wherever it stands. Here a sign is put
behind the first character of every such text, which is then no token any more; the sign itself, where a speaker wrote
it, is doubled, so that nothing is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

SIGN = "\u241b"
"""The symbol for escape: seen on paper and screen, and hardly ever written."""

COMMON = (
    r"<\|[^<>|\s][^<>|\n]{0,60}\|>",
    r"<\uff5c[^<>\uff5c\n]{1,60}\uff5c>",
    r"</?(?:s|bos|eos|pad|unk|mask|cls|sep|think|thinking|reasoning|start_of_turn|end_of_turn|start_of_image|end_of_image"
    r"|image_soft_token|tool_call|tool_response)>",
    r"</?[a-z]{2,12}:(?:think|bos|eos|tool_call)>",
    r"\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|THINK|gMASK|CLS|SEP|PAD|UNK|MASK)\]",
    r"<</?SYS>>",
    r"<unused\d+>",
)
"""Control texts of the common model families, as patterns: a judge behind a server does not list its own."""


def neutralise(text: str, markers: Iterable[str] = ()) -> str:
    """The text without anything that a model could take for a control token; `restore` gives it back."""
    doubled = text.replace(SIGN, SIGN * 2)
    return _anywhere(tuple(markers)).sub(rf"\1{SIGN}", doubled)


def restore(text: str) -> str:
    """What `neutralise` was given."""
    return re.sub(f"{SIGN}({SIGN}?)", r"\1", text)


@lru_cache(maxsize=64)
def _anywhere(markers: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the first character of every marker, of those that overlap, too."""
    own = [re.escape(marker) for marker in markers if len(marker) > 1 and SIGN not in marker]
    return re.compile(rf"(?={'|'.join((*own, *COMMON))})([\s\S])")
