"""Which texts are fit to be a name. Knows nothing that has one."""

from __future__ import annotations

import re

# Control characters, line ends, what turns the direction of writing beyond the name's own end, halves of characters.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def holds_unseen(name: str) -> bool:
    """Whether a character is in it that nobody sees and that changes how the name, or what follows it, reads."""
    return _UNSEEN.search(name) is not None


def plain(name: str) -> str:
    """The name itself; ValueError, with what to do, where it holds what nobody sees."""
    if (found := _UNSEEN.search(name)) is not None:
        raise ValueError(f"holds the character U+{ord(found.group()):04X}, which nobody sees; remove it")
    return name
