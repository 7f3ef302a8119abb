"""A rubric's flow as a Mermaid flowchart that a clinician can read. Knows no file and no judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from vera_local.bundle.rubric import Do, Option, Question, Rubric

WIDTH = 90
"""Characters of a question's text that are shown."""

_ENDS = {
    Do.STOP_SCORE: ("score", "End: what was found counts"),
    Do.STOP_NOT_RELEVANT: ("leave", "End: all Not Relevant, unless every dimension was visited"),
    Do.STOP_DISCARD: ("discard", "End: all Not Relevant"),
}
_LAST = ("done", "End of the rubric")


def flowchart(rubric: Rubric) -> str:
    """Mermaid source: a box for each question, grouped by dimension, and an arrow for the answers that share a way.

    Needs known targets. A finding is written behind its answer; a dimension that an answer skips is named there, too.
    """
    nodes = {q.id: f"q{i}" for i, q in enumerate(rubric.questions, 1)}
    lines = ["flowchart TD"]
    for i, dimension in enumerate(rubric.dimensions, 1):
        inside = [q for q in rubric.questions if q.dimension == dimension]
        boxes = [f"    {nodes[q.id]}[{_quoted(f'{q.id}. {_short(q.text)}')}]" for q in inside]
        lines += [f"  subgraph d{i}[{_quoted(dimension)}]", *boxes, "  end"]
    ways = [way for question in rubric.questions for way in _ways(rubric, question, nodes)]
    ends = dict.fromkeys(end for _, end, _ in ways if end is not None)
    lines += [f"  {name}([{_quoted(text)}])" for name, text in ends]
    lines += [f"  {start} -->|{_quoted(label)}| {end[0] if end else to}" for start, end, (to, label) in ways]
    return "\n".join(lines) + "\n"


_Way = tuple[str, tuple[str, str] | None, tuple[str, str]]


def _ways(rubric: Rubric, question: Question, nodes: dict[str, str]) -> Iterator[_Way]:
    """The question's node; an end's name and text, or None; the node led to and the answers that lead there."""
    answers: defaultdict[tuple[tuple[str, str] | None, str], list[str]] = defaultdict(list)
    for option in question.options:
        after = rubric.follow(question, option)
        end = _ENDS.get(option.action.do, _LAST) if after is None else None
        answers[end, nodes[after.id] if after else ""].append(_answer(option))
    for (end, to), labels in answers.items():
        yield nodes[question.id], end, (to, " / ".join(labels))


def _answer(option: Option) -> str:
    finding = f" ({option.severity})" if option.severity else ""
    skips = " (dimension Not Relevant)" if option.action.do is Do.SKIP_DIMENSION else ""
    return f"{option.answer}{finding}{skips}"


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= WIDTH else f"{plain[: WIDTH - 1].rstrip()}…"


def _quoted(text: str) -> str:
    for sign, code in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(sign, code)
    return f'"{text}"'
