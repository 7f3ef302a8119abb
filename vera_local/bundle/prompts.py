"""Prompt templates and the placeholders each may hold. Knows no model and nothing of what is inserted.

A placeholder is a name in braces: letters, digits, blanks, apostrophes and / ( ) & - _ , . + only. {{ and }} stand for
plain braces; any other brace is plain as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, fields
from functools import cached_property

from vera_local.bundle.problem import raise_first
from vera_local.bundle.source import Source
from vera_local.errors import UserError

_MARK = re.compile(r"\{\{|\}\}|\{([\w /()&,.+'\u2019\-]+)\}")


@dataclass(frozen=True)
class Template:
    """A text with {placeholders}."""

    text: str

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """The names in braces."""
        return frozenset(found[1] for found in _MARK.finditer(self.text) if found[1] is not None)

    @cached_property
    def paragraphs(self) -> tuple[Template, ...]:
        """Its parts between blank lines."""
        return tuple(Template(part) for part in re.split(r"\n\s*\n", self.text.strip()))

    def splice(self, parts: Mapping[str, Template]) -> Template:
        """The template with some placeholders replaced by templates, whose own placeholders stay; others stay, too."""
        return Template(_MARK.sub(lambda found: parts[found[1]].text if found[1] in parts else found[0], self.text))

    def render(self, values: Mapping[str, str]) -> str:
        """The text with every placeholder replaced by its value, which is not looked into; KeyError where one lacks."""
        return _MARK.sub(lambda found: found[0][0] if found[1] is None else values[found[1]], self.text)


@dataclass(frozen=True)
class PersonaPrompts:
    """The templates for a model that plays a persona."""

    simulator: Template
    """System prompt of the model that plays a persona; takes its columns and {end_signal}."""
    simulator_short: Template | None
    """System prompt of a very small model that writes a persona's messages from notes; takes the persona's columns,
    {end_signal} and {reply}, the chatbot's latest message (empty before the first). None where the bundle has no
    prompts for such a model, which gets the full ones then."""
    simulator_examples: Template | None
    """For it, in paragraphs: notes, the message made of them, other notes, their message and so on."""
    simulator_notes: Template | None
    """For it, in paragraphs: the notes for a persona's first message, its second and so on; takes the columns."""
    reminder: Template
    """Keeps the model in the persona's part: holds the chatbot's latest {message}, or else stands behind it."""
    opening: Template
    """The user message that asks the simulator for its first message."""


PERSONA_PROMPTS = tuple(part.name for part in fields(PersonaPrompts))
"""Their names in rubric.yaml."""


@dataclass(frozen=True)
class Prompts:
    """The templates of one bundle; `persona` is None where every message of a persona is scripted."""

    persona: PersonaPrompts | None
    chatbot: Template | None
    """Default system prompt of a local chatbot under test; None: it gets no system prompt."""
    judge_system: Template
    """System prompt of a judge; that of an official bundle holds the evidence, {fence} and {transcript}, itself."""
    judge_transcript: Template
    """The conversation as evidence; takes {fence} and {transcript}. Empty where `judge_system` holds them."""
    judge_question: Template
    """One question; takes what `Judge.prompt` gives it, such as {question}, {guidance} and {options}; {reply} is how to
    answer, at once or behind reasons."""
    judge_question_short: Template
    """The same for very small models; takes {options_line}, the options in one line, and may leave the guidance out."""


@dataclass(frozen=True)
class _Slots:
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()


def load_prompts(sources: Mapping[str, Source], columns: Set[str]) -> Prompts:
    """The templates from their files, by prompt name; `columns` are those of the personas.

    The prompts for a simulator are there all or none; `chatbot` may be absent, too.
    UserError for an empty file, an unknown placeholder and a required one that is not there. Line ends become
    plain newlines, and those at the end of a file are no part of the prompt.
    """
    raise_first(problems(sources, columns))
    loaded = {name: _template(source) for name, source in sources.items()}
    for_persona = {name: loaded.pop(name) for name in PERSONA_PROMPTS if name in loaded}
    persona = PersonaPrompts(**for_persona) if for_persona else None
    return Prompts(persona=persona, chatbot=loaded.pop("chatbot", None), **loaded)


def problems(sources: Mapping[str, Source], columns: Set[str]) -> list[str]:
    """Everything wrong with the prompts, each as a sentence; empty where `load_prompts` takes them."""
    slots = _slots(columns)
    found = [fault for name, source in sources.items() for fault in _faults(source, slots.get(name, _Slots()))]
    if not found and (examples := sources.get("simulator_examples")) and len(_template(examples).paragraphs) % 2:
        found.append(f"{examples.path}: the last notes have no message; write it in a paragraph behind them.")
    return found


def _slots(columns: Set[str]) -> dict[str, _Slots]:
    written = _Slots(optional=frozenset(columns) | {"end_signal"})
    asked = frozenset({"guidance", "reply"})
    return {
        "simulator": written,
        "simulator_short": _Slots(optional=written.optional | {"reply"}),
        "simulator_notes": written,
        "reminder": _Slots(optional=frozenset({"message"})),
        "judge_transcript": _Slots(required=frozenset({"fence", "transcript"})),
        "judge_question": _Slots(frozenset({"question", "options"}), asked),
        "judge_question_short": _Slots(frozenset({"question", "options_line"}), asked),
    }


def _template(source: Source) -> Template:
    return Template(source.text.replace("\r\n", "\n").rstrip("\n"))


def _faults(source: Source, slots: _Slots) -> Iterator[str]:
    try:
        template = _template(source)
    except UserError as error:
        yield str(error)
        return
    if not template.text.strip():
        yield f"{source.path} is empty; write the prompt in it."
        return
    for unknown in sorted(template.placeholders - slots.required - slots.optional):
        yield f"{source.path}: {{{unknown}}} is no placeholder of this prompt; {_allowed(slots)}."
    for missing in sorted(slots.required - template.placeholders):
        yield f"{source.path}: the placeholder {{{missing}}} is missing; write it where its text belongs."


def _allowed(slots: _Slots) -> str:
    names = ", ".join(f"{{{name}}}" for name in sorted(slots.required | slots.optional))
    return f"use {names}, or write plain braces twice" if names else "it takes none: write plain braces twice"
