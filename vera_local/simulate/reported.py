"""A message without the words of others that it quotes or reports. Knows quotation marks, and of verbs the English."""

from __future__ import annotations

import re
from functools import lru_cache, reduce

_QUOTED = re.compile(r'"[^"\n]*"|[“„][^“”\n]*[“”]|«[^»\n]*»|「[^」\n]*」|(?<!\w)\'[^\'\n]+\'(?!\w)')

# Behind a colon a whole sentence is reported, without one only as far as the clause goes.
_REPORTED = re.compile(
    r"\b(?:sa(?:id|ys?|ying)|wrote|writ(?:es?|ing)|typed|t(?:old|ells?|elling) (?:me|us|him|her|them"
    r"|people|every(?:one|body)|(?:my|the|a) \w+)|answer(?:ed|s)"
    r"|repl(?:ied|ies)|repeat(?:ing|ed|s)?|reads|hear(?:ing|d)|goes"
    r"|(?:am|is|are|was|were|be|i|you|'m|'s|'re) like(?! to\b))\b"
    r"(?:\s*[:,-]+[^.!?\n]*|[^.,;!?\n]*)[.,;!?]*",
    re.IGNORECASE,
)
_WHOLE = re.compile(r'["“„]([^"“”]*)["“”]')
_LEFT_OUT = " \N{HORIZONTAL ELLIPSIS} "


@lru_cache(maxsize=16)  # Several rules ask it of one message.
def own_words(text: str) -> str:
    """The text without what is quoted or reported; one that is a quotation as a whole is the writer's own."""
    plain = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").strip()
    whole = _WHOLE.fullmatch(plain)
    return reduce(lambda rest, others: others.sub(_LEFT_OUT, rest), (_QUOTED, _REPORTED), whole[1] if whole else plain)
