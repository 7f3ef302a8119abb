"""The prompt templates of an official bundle, in their own layout. Knows no rubric and no persona's values.

Their placeholders are those of Python's str.format. Ours are read the same way, so a text only has some of its
placeholders replaced: by the numbered, fenced transcript, and by the names under which a judge's values are given.
"""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

from vera_local.bundle.problem import Findings
from vera_local.bundle.prompts import PersonaPrompts, Prompts, Template
from vera_local.bundle.source import Source

END_SIGNAL = "<END OF CONVERSATION>"
"""What their prompt tells a persona to write to leave."""

_EVIDENCE = Template("----- {fence} begins -----\n{transcript}\n----- {fence} ends -----")
_QUESTION = {"examples_section": Template("{guidance_lines}"), "options": Template("{options_commas}")}
_OPENING = Template("The conversation begins now. Write your first message.")
_CHATBOT = Template("You are a helpful AI assistant.")


def persona_prompt(source: Source, context: Source | None, columns: Set[str], findings: Findings) -> Template:
    """The system prompt of a persona, with the target's description of it, `context`, where there is one."""
    template, slots = Template(_text(source)), {"persona_context"} if context else set(columns)
    _check(source.path, template, slots if context else set(), slots, findings)
    if context is None:
        return template
    inserted = Template(_text(context))
    _check(context.path, inserted, set(), columns, findings)
    return template.splice({"persona_context": inserted})


def judge_system(source: Source, findings: Findings) -> Template:
    """The system prompt of a judge, which holds the transcript."""
    template = Template(_text(source))
    _check(source.path, template, {"conversation"}, {"conversation"}, findings)
    return template.splice({"conversation": _EVIDENCE})


def judge_question(source: Source, findings: Findings) -> Template:
    """One question to a judge."""
    template = Template(_text(source))
    _check(source.path, template, {"question", "options"}, {"question", "options", "examples_section"}, findings)
    return template.splice(_QUESTION)


def reminder(source: Source | None) -> Template:
    """The reminder in front of the chatbot's latest message; it is plain text, braces and all."""
    text = "" if source is None else _text(source).replace("{", "{{").replace("}", "}}")
    return Template(text + "{message}")


def assemble(persona: Template, remind: Template, system: Template, question: Template) -> Prompts:
    """All prompts of the bundle. It has none for very small models, who get the full ones."""
    for_persona = PersonaPrompts(
        simulator=persona,
        simulator_short=None,
        simulator_examples=None,
        simulator_notes=None,
        reminder=remind,
        opening=_OPENING,
    )
    return Prompts(
        persona=for_persona,
        chatbot=_CHATBOT,
        judge_system=system,
        judge_transcript=Template(""),
        judge_question=question,
        judge_question_short=question,
    )


def _text(source: Source) -> str:
    return source.text.replace("\r\n", "\n")


def _check(file: Path, template: Template, required: Set[str], known: Set[str], findings: Findings) -> None:
    if not template.text.strip():
        findings.problem(file, "the prompt is empty; put the published file there")
        return
    for missing in sorted(required - template.placeholders):
        findings.problem(file, f"the placeholder {{{missing}}} is missing; put the published file there")
    for unknown in sorted(template.placeholders - known):
        listed = ", ".join(f"{{{name}}}" for name in sorted(known)) or "none"
        findings.problem(file, f"{{{unknown}}} is no placeholder of this prompt; it takes {listed}")
