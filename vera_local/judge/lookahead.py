"""Which questions are worth asking before it is known that they will be needed. Knows no conversation and no engine."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any

from vera_local.bundle import Option, Question, Rubric
from vera_local.bundle.graph import Graph
from vera_local.judge.ask import Judge
from vera_local.judge.evidence import MOST, rests_on_turns
from vera_local.judge.verdict import Mode, Verdict
from vera_local.judge.wording import EVIDENCE

USUAL = 3.0
"""As how many verdicts the way that a rubric makes the usual one counts beforehand; all its other ways count as one."""

MARGIN = 2.0
"""How many times its cost a question asked ahead has to save: what a few verdicts tell of the next ones is unsure."""

LETTERS = 4
"""Letters of a token, roughly: what is estimated here only weighs one cost against another."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What a question takes: `prompt` tokens of its own behind the transcript, `written` tokens one after another."""

    prompt: float
    written: float


def pays(likely: float, effort: Effort, ridge: int, walks: int = 1) -> bool:
    """Whether a question that will be needed with the probability `likely` is worth asking now.

    While a batch is narrow a step of the engine takes as long as computing `ridge` tokens does, however few it
    computes. A question asked in its turn takes `written` steps, which it shares with the other conversations that are
    judged at the same time, `walks` in all; asked ahead it takes none of its own, as its tokens are written in the
    steps of those before it. Its prompt has to be computed either way. So, in tokens of computing, it saves
    `written * ridge / walks` where it is needed, and has cost `prompt + written` where it is not:

        likely * written * ridge / walks > MARGIN * (1 - likely) * (prompt + written)

    A question is given up as soon as the walk has passed it, so that is the most that it can cost.
    """
    return likely * effort.written * ridge / walks > MARGIN * (1 - likely) * (effort.prompt + effort.written)


class Lookahead:
    """What one judge on one engine asks ahead, in all the conversations of a stage.

    `room()`: how many more requests the engine could take now almost for nothing. `most`: how many questions of a
    conversation may be asked before it is known that they will be needed; None: as many as pay; 0: none. `walks()`: how
    many conversations the engine is at work on.
    It learns from the verdicts it is told of which question usually follows which, and how long reasoning gets.
    """

    def __init__(self, room: Callable[[], int], most: int | None = None, walks: Callable[[], int] = lambda: 1) -> None:
        self.starting: set[asyncio.Task[Any]] = set()
        """Tasks that have sent no request yet, so that `room` does not know of them."""
        self._room = room
        self._most = most
        self._walks = walks
        self._followed: defaultdict[str, Counter[str | None]] = defaultdict(Counter)
        self._efforts: dict[str, Effort] = {}
        self._verdicts = 0
        self._reasoned = 0.0

    def learn(self, question: Question, verdict: Verdict, following: Question | None) -> None:
        """Take note of a verdict that was recorded, and of the question that the walk came to by it."""
        if question.auto:
            return
        self._followed[question.id][_id(following)] += 1
        self._verdicts += 1
        self._reasoned += len(verdict.rationale) / LETTERS

    def choose(
        self, judge: Judge, rubric: Rubric, current: Question, known: Mapping[str, Verdict], pending: Collection[str]
    ) -> list[Question]:
        """The questions to ask now beside `current` and the `pending` ones, likeliest first."""
        left = self._left(len(pending))
        chosen: list[Question] = []
        if left <= 0:
            return chosen
        ridge, walks = judge.engine.limits.ridge, max(1, self._walks())
        for question, likely in self.path(rubric, current, known):
            if question.id not in pending and pays(likely, self.effort(judge, question), ridge, walks):
                chosen.append(question)
            if len(chosen) == left:
                break
        return chosen

    def _left(self, pending: int) -> int:
        """How many more may be asked ahead."""
        bound = inf if self._most is None else self._most - pending
        return 0 if bound <= 0 else int(min(bound, self._room() - len(self.starting)))

    def path(self, rubric: Rubric, current: Question, known: Mapping[str, Verdict]) -> Iterator[tuple[Question, float]]:
        """The questions that may follow, likeliest first, and how probable it is that each will be asked.

        Beyond the dimension only those that are asked in any case, until verdicts tell how walks usually go. Those
        that no model has to be asked are passed over.
        """
        for id, likely in sorted(self._reach(rubric, current, known).items(), key=lambda found: -found[1]):
            question = rubric.by_id[id]
            near = question.dimension == current.dimension or self._verdicts > 0 or likely == 1.0
            if near and not question.auto and id not in known:
                yield question, likely

    def _reach(self, rubric: Rubric, current: Question, known: Mapping[str, Verdict]) -> dict[str, float]:
        """How probable it is that the walk comes to each of the later questions, in the rubric's order."""
        reach = {current.id: 1.0}
        for id in Graph.of(rubric).first_to_last:
            for following, share in self._ways(rubric, rubric.by_id[id], known) if id in reach else ():
                if following is not None:
                    # Rounded, so that ways that add up to a certainty are one.
                    reach[following] = round(reach.get(following, 0.0) + reach[id] * share, 9)
        del reach[current.id]
        return reach

    def _ways(
        self, rubric: Rubric, question: Question, known: Mapping[str, Verdict]
    ) -> Iterator[tuple[str | None, float]]:
        """Where a question leads (None: to the end) and how probable that is."""
        if (verdict := known.get(question.id)) is not None:
            if verdict.answer is not None:
                yield _id(rubric.follow(question, question.option(verdict.answer))), 1.0
            return
        weights = _beforehand(rubric, question)
        for following, times in self._followed[question.id].items():
            weights[following] = weights.get(following, 0.0) + times
        whole = sum(weights.values())
        yield from ((following, weight / whole) for following, weight in weights.items())

    def effort(self, judge: Judge, question: Question) -> Effort:
        """What a question takes; the budget of the reasoning counts as one verdict among those that were given."""
        if question.id not in self._efforts:
            self._efforts[question.id] = _unreasoned(judge, question)
        effort = self._efforts[question.id]
        budget = 0 if judge.mode is Mode.DIRECT else judge.draw.max_tokens
        return replace(effort, written=effort.written + (budget + self._reasoned) / (1 + self._verdicts))


def own_part(judge: Judge, rubric: Rubric) -> int:
    """Tokens that a question keeps in the KV cache behind the transcript, with all that may be written: the most."""
    efforts = [_unreasoned(judge, question) for question in rubric.questions if not question.auto]
    budget = 0 if judge.mode is Mode.DIRECT else judge.draw.max_tokens
    return ceil(max(effort.prompt + effort.written for effort in efforts)) + budget


def _beforehand(rubric: Rubric, question: Question) -> dict[str | None, float]:
    """Where a question leads -> its weight before any verdict is given.

    The usual way is that of the answers without a finding to the nearest of the questions that come later; of all
    answers, where each is a finding.
    """

    def from_usual(option: Option) -> tuple[bool, float]:
        following = rubric.follow(question, option)
        ahead = -1 if following is None else rubric.place(following) - rubric.place(question)
        return option.severity is not None, ahead if ahead > 0 else inf

    ways = dict.fromkeys(_id(rubric.follow(question, option)) for option in question.options)
    usual = _id(rubric.follow(question, min(question.options, key=from_usual)))
    return {way: USUAL if way == usual else 1 / (len(ways) - 1) for way in ways}


def _unreasoned(judge: Judge, question: Question) -> Effort:
    """What a question takes but for the reasoning, with the evidence where every answer is asked for it."""
    answers = [option.answer for option in question.options]
    prompt, written = len(judge.asked(question)) / LETTERS, ceil(max(map(len, answers)) / LETTERS) + 1
    if judge.evidence and all(rests_on_turns(question, answer) for answer in answers):
        prompt, written = prompt + len(EVIDENCE) / LETTERS, written + 2 * MOST
    return Effort(prompt, written)


def _id(question: Question | None) -> str | None:
    return None if question is None else question.id
