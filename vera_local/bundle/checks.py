"""What makes a rubric sound, as a list of what is wrong with one. Knows no file and no YAML.

Each problem is one sentence without its full stop: the place (a key or a question), what is wrong; the remedy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from vera_local.bundle.graph import Graph
from vera_local.bundle.rubric import Action, Do, Option, Question, Rubric
from vera_local.plain import holds_unseen


def problems(rubric: Rubric) -> list[str]:
    """Everything wrong with `rubric`, empty where it is sound; the flow is looked at once ids and targets are."""
    found = [*_ratings(rubric), *_dimensions(rubric)]
    for question in rubric.questions:
        found += [f"question {question.id}: {problem}" for problem in _question(rubric, question)]
    broken = [*_ids(rubric), *_targets(rubric)]
    return found + (broken or list(_flow(rubric)))


def repeated(words: Iterable[str]) -> list[str]:
    """The words that occur more than once, in order, each once."""
    seen: dict[str, int] = {}
    for word in words:
        seen[word] = seen.get(word, 0) + 1
    return [word for word, times in seen.items() if times > 1]


def _untidy(word: str) -> bool:
    return word != word.strip() or len(word.splitlines()) != 1 or holds_unseen(word)


def _ratings(rubric: Rubric) -> Iterator[str]:
    for rating in repeated(rubric.ratings):
        yield f"ratings: '{rating}' is listed twice; remove one"
    for word in (*rubric.ratings, *([] if rubric.not_relevant is None else [rubric.not_relevant])):
        if _untidy(word):
            yield f"ratings: {word!r} has blanks at an end, a line break or what nobody sees; remove them"
    if rubric.not_relevant in rubric.ratings:
        yield f"not_relevant: '{rubric.not_relevant}' is also one of the ratings; choose another word"
    yield from _severities(rubric)


def _severities(rubric: Rubric) -> Iterator[str]:
    allowed = rubric.ratings[1:]
    for severity, rating in rubric.severities.items():
        if rating not in allowed:
            yield f"severities.{severity}: '{rating}' is no rating below the best; use one of {_list(allowed)}"
    harm = [allowed.index(rating) for rating in rubric.severities.values() if rating in allowed]
    if harm != sorted(harm):
        yield "severities: they are not in order of harm; list the one with the mildest rating first"


def _dimensions(rubric: Rubric) -> Iterator[str]:
    twice = repeated(rubric.dimensions)
    for dimension in twice:
        yield f"dimensions: '{dimension}' is listed twice; put its questions under one entry"
    for dimension in rubric.dimensions:
        if _untidy(dimension):
            yield f"dimensions: {dimension!r} has blanks at an end, a line break or what nobody sees; remove them"
    if not twice and tuple(d for d, _ in groupby(q.dimension for q in rubric.questions)) != rubric.dimensions:
        yield "dimensions: their questions are not together and in order; list each dimension's questions in one block"


def _question(rubric: Rubric, question: Question) -> Iterator[str]:
    if question.auto and len(question.options) != 1:
        yield f"it is auto but has {len(question.options)} options; leave exactly one"
    if not question.auto and len(question.options) < 2:
        yield "it leaves a judge no choice; give it at least two options, or auto: true"
    yield from _answers([o.answer for o in question.options])
    for option in question.options:
        yield from _severity(rubric, question, option)


def _answers(answers: list[str]) -> Iterator[str]:
    for answer in answers:
        if not answer or _untidy(answer):
            fault = "is empty, has blanks at an end, a line break or what nobody sees"
            yield f"the answer {answer!r} {fault}; write it as one plain line"
    twice = repeated(answers)
    for answer in twice:
        yield f"the answer '{answer}' is offered twice; remove one"
    for answer in repeated(a.casefold() for a in dict.fromkeys(answers)):
        yield f"several answers differ only by case ('{answer}'); reword them"


def _severity(rubric: Rubric, question: Question, option: Option) -> Iterator[str]:
    if option.severity is None:
        return
    if option.severity not in rubric.severities:
        known = _list(rubric.severities)
        yield f"the answer '{option.answer}' has the unknown severity '{option.severity}'; use one of {known}"
    if question.auto:
        yield "it is auto, so no answer can raise a severity; remove the severity"
    elif discards(option.action, last=question.dimension == rubric.dimensions[-1]):
        yield f"the answer '{option.answer}' makes its dimension Not Relevant; remove its severity"


def discards(action: Action, *, last: bool) -> bool:
    """Whether a finding beside `action` can never count; in the `last` dimension the rubric may be finished."""
    return action.do in (Do.SKIP_DIMENSION, Do.STOP_DISCARD) or (action.do is Do.STOP_NOT_RELEVANT and not last)


def _ids(rubric: Rubric) -> Iterator[str]:
    for question in repeated(q.id for q in rubric.questions):
        yield f"question {question}: the id is used twice; give each question its own"
    for question in dict.fromkeys(q.id for q in rubric.questions):
        if _untidy(question):
            yield f"question {question!r}: the id has blanks at an end, a line break or what nobody sees; remove them"


def _targets(rubric: Rubric) -> Iterator[str]:
    for question in rubric.questions:
        for option in question.options:
            target = option.action.target
            if target is not None and target not in rubric.by_id:
                yield f"question {question.id}: '{option.answer}' leads to '{target}', which is no question; name one"


def _flow(rubric: Rubric) -> Iterator[str]:
    graph = Graph.of(rubric)
    if cycle := graph.cycle():
        yield f"question {cycle[0]}: the flow goes round in a cycle: {' -> '.join(cycle)}; let one of them lead on"
    if rubric.not_relevant is None:
        yield from _unrated(rubric, graph)
    reached = graph.flood(rubric.questions[0].id)
    for question in rubric.questions:
        if question.id not in reached:
            yield f"question {question.id}: no path from the first question leads to it; let an answer lead there"
        for option in question.options:
            if option.action.do is Do.SKIP_DIMENSION and _stays(rubric, question, option):
                yield f"question {question.id}: '{option.answer}' skips its dimension but stays in it; lead further on"


def _unrated(rubric: Rubric, graph: Graph) -> Iterator[str]:
    """What would leave a dimension without a rating, in a rubric that has no word for that."""
    remedy = "lead on to every dimension, or add not_relevant"
    for question in rubric.questions:
        for option in question.options:
            if option.action.do in (Do.SKIP_DIMENSION, Do.STOP_NOT_RELEVANT):
                yield f"question {question.id}: '{option.answer}' makes its dimension Not Relevant; {remedy}"
    for dimension in rubric.dimensions:
        if past := _way_past(rubric, graph, dimension):
            yield f"question {past}: a walk can end there without a question of '{dimension}'; {remedy}"


def _way_past(rubric: Rubric, graph: Graph, dimension: str) -> str | None:
    """The first question at which a walk can end that asked nothing of `dimension`; None where there is none."""
    inside = {q.id for q in rubric.questions if q.dimension == dimension}
    start = rubric.questions[0].id
    around = graph.flood(start, inside) if start not in inside else set()
    return next((q.id for q in rubric.questions if q.id in around and None in graph.successors[q.id]), None)


def _stays(rubric: Rubric, question: Question, option: Option) -> bool:
    after = rubric.follow(question, option)
    return after is not None and after.dimension == question.dimension


def _list(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)
