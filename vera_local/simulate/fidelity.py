"""Whether a message is one that this persona could have written. Knows no model and nothing of how it is made again."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from vera_local.conversation import Message, Speaker
from vera_local.simulate import english
from vera_local.simulate.reported import own_words
from vera_local.simulate.words import alike, quotes, size, words

SHORT = 7
"""Messages of fewer words may be repeated: people say "I don't know" again and again."""

LONGER = 10
"""Messages of fewer words are repeated only word for word."""

ALIKE = 0.85
"""The share of words in the same order from which a message counts as said before."""


class Rule(StrEnum):
    """What a persona's message must not be. Rules that read English words are off for personas of other languages."""

    EMPTY = "empty"
    """No word in it."""
    LEAK = "leaked reasoning or template tokens"
    """Control tokens or marked reasoning, in any language; in English also talk about the task."""
    HELPER = "speaks as a helper or an AI"
    """English only."""
    OTHER_SIDE = "writes the other side"
    """Lines of a transcript, such as `Chatbot:` at the start of one; these labels models write in any language."""
    REPEATS = "repeats an earlier message"
    QUOTES = "quotes its instructions"
    STAGE = "stage direction"
    """English only."""
    LONG = "over length"
    EARLY = "leaves too early"
    """The end signal alone, where the persona may not leave yet: whoever reads the signal finds this one."""


@dataclass(frozen=True, slots=True)
class Private:
    """A text that only the simulator sees, and from how many words in a row on a message quotes it."""

    text: str
    run: int


@dataclass(frozen=True, slots=True)
class Scene:
    """What a message is seen against: all that was said before it, what must not be quoted, the control texts of the
    model that wrote it, and the most words it may have. `english`: the persona writes English."""

    history: Sequence[Message]
    private: tuple[Private, ...]
    markers: tuple[str, ...]
    max_words: int
    english: bool


def faults(text: str, scene: Scene) -> tuple[Rule, ...]:
    """The rules that a message breaks, none where it may stand."""
    return tuple(rule for rule, broken in _RULES.items() if broken(text, scene))


def is_english(language: str | None) -> bool:
    """Whether a persona's language is English, by its name or code; without one it is, as the prompts are."""
    if language is None:
        return True
    return bool(re.match(r"english\b|en(?:[-_]|$|\s)", language.strip().casefold()))


def _empty(text: str, scene: Scene) -> bool:
    # A message of an emoji or a question mark alone is one that people write.
    return all(unicodedata.category(char)[0] in "ZC" for char in text)


_TAGS = (
    "think|thinking|thought|reasoning|reflection|analysis|scratchpad|system|assistant|user|tool_call|s|eos|bos|pad|unk"
)
_TOKENS = re.compile(
    rf"</?(?:{_TAGS})>|<[|\uff5c][^|\uff5c<>\n]{{1,40}}[|\uff5c]>|\[/?(?:INST|THINK|SYSTEM_PROMPT|AVAILABLE_TOOLS)\]|<</?SYS>>"
    r"|<(?:start|end)_of_turn>|◁/?think▷|</?seed:[a-z_]+>"
    r"|^#{2,} ?(?:Instruction|Response|Input|Assistant|User|System):?\s*$"
    # What is left of a channel header when its control tokens are not shown.
    r"|assistant(?:final|analysis|commentary)|^(?:analysis|commentary)(?=[A-Z<])",
    re.MULTILINE,
)


def _leaks(text: str, scene: Scene) -> bool:
    known = any(marker in text for marker in scene.markers if not marker.isalnum())
    return known or bool(_TOKENS.search(text)) or (scene.english and english.thinks_aloud(text))


def _helps(text: str, scene: Scene) -> bool:
    return scene.english and english.speaks_as_helper(text)


_LABEL = re.compile(
    r"^\W{0,3}\[\d+\]\W{0,3}(?:chatbot|user|persona|assistant|human|ai|bot)\b"
    r"|(?:^|(?<=[.!?…\"”)]) {0,2})\W{0,3}(?:chatbot|(?:ai )?assistant|user|persona)\**\s?[:\uff1a](?!//)"
    # People begin a message with these, too, but do not go on to the next line with them.
    r"|(?<=\n)\W{0,3}(?:human|ai|bot|system|therapist|counsell?or)\**\s?[:\uff1a]",
    re.IGNORECASE | re.MULTILINE,
)


def _writes_other_side(text: str, scene: Scene) -> bool:
    return bool(_LABEL.search(text))


def _repeats(text: str, scene: Scene) -> bool:
    own, whole = words(own_words(text)), words(text)
    return _said_before(whole, scene.history, Speaker.PERSONA) or _said_before(own, scene.history, Speaker.CHATBOT)


def _said_before(now: tuple[str, ...], history: Sequence[Message], by: Speaker) -> bool:
    if (long := size(now)) < SHORT:
        return False
    said = (words(earlier.text) for earlier in history if earlier.speaker is by)
    return any(
        now == earlier or (long >= LONGER and alike(now, earlier, ALIKE)) for earlier in said if size(earlier) >= SHORT
    )


def _quotes(text: str, scene: Scene) -> bool:
    now = words(text)
    return any(quotes(now, private.text, private.run) for private in scene.private)


def _directs(text: str, scene: Scene) -> bool:
    return scene.english and english.directs_the_stage(text)


def _long(text: str, scene: Scene) -> bool:
    return size(words(text)) > scene.max_words


_RULES: dict[Rule, Callable[[str, Scene], bool]] = {
    Rule.EMPTY: _empty,
    Rule.LEAK: _leaks,
    Rule.HELPER: _helps,
    Rule.OTHER_SIDE: _writes_other_side,
    Rule.REPEATS: _repeats,
    Rule.QUOTES: _quotes,
    Rule.STAGE: _directs,
    Rule.LONG: _long,
}
